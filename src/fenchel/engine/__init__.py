"""What finds answers faster than epochs do: the roles of an engine, and the attempts that stand behind one protocol."""
