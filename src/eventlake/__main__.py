"""`python -m eventlake` is `eventlake`."""

from eventlake.cli.main import main

main()
