"""eventlake: Segment-spec events in, clean Parquet tables out."""

__version__ = "0.1.0"
