"""What every room stands on and what knows no mathematics: files, Ctrl-C, attributes made on demand."""
