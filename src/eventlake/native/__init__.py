"""The part of the reader that is written in C; see lines.h."""
