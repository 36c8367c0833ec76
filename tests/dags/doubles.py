"""Stand-ins for what Airflow gives a task."""

from __future__ import annotations


class Event:
    def __init__(self):
        self.keys, self.extra = [], {}

    def add_partitions(self, key):
        self.keys.append(key)


class Events(dict):
    def __missing__(self, asset):
        self[asset] = Event()
        return self[asset]
