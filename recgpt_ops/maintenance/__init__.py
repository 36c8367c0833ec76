"""What a warehouse no longer needs goes, what it needs stays: generations, files, recorded answers; and whether nights still come.

generations.py   which generations nothing names any more
dropping.py      the record of a drop, then the commit that removes its files from the log
sweeping.py      folders and files that belong to no table: staged rows, recorded answers, progress
tables.py        files that no log names, checkpoints, old log entries
freshness.py     the newest night of each method, and whether it is late
maintain.py      all of it, in the order that frees room first
"""
