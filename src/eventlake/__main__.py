"""`python -m eventlake` is `eventlake`."""

from eventlake.cli.start import main

main()
