"""Recomputes what certificates, pointer, quarantine, calls and ledger say of the tables, and names every difference."""
