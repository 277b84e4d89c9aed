"""What a solve returns; the classes live in :mod:`fenchel.solver.result`."""

from .solver.result import History, Record, Result, Snapshot, Status, write_whole

__all__ = ["History", "Record", "Result", "Snapshot", "Status", "write_whole"]
