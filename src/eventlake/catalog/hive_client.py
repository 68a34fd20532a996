"""Calls to a Hive metastore, with errors that say who must act.

It is spoken to by thrift, in the calls that metastores of Hive 2.3, 3 and 4 have in common. All that is asked may be
asked again: if a connection breaks, another one is made, and the call is repeated.
"""

import socket
import time
import weakref
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from eventlake.catalog.hive_refusals import explained
from eventlake.errors import EventLakeError, TransientError

CONNECT_SECONDS = 10.0
_BROKEN = (TTransportException, TProtocolException, OSError)
_PAUSES = (0.0, 1.0)  # before a call is repeated: the first is for a connection that broke while it was idle


class _Connection:
    """A connection to one server."""

    def __init__(self, uri: str, timeout: float) -> None:
        place = urlsplit(uri)
        handle = socket.create_connection((place.hostname, place.port or 0), timeout=CONNECT_SECONDS)
        handle.settimeout(timeout)
        own = TSocket()
        own.setHandle(handle)
        self.client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(TBufferedTransport(own)))
        self.close = weakref.finalize(self, handle.close)


class Metastore:
    """A Hive metastore, at one of several addresses. Threads may share it."""

    def __init__(self, uris: Sequence[str], *, timeout: float) -> None:
        self._uris = list(uris)
        self._timeout = timeout
        self._idle: list[_Connection] = []

    def ask(self, method: str, what: str, *asked: Any, expecting: tuple[type[Exception], ...] = ()) -> Any:
        """Carry out one call; `what` says for messages what it is for. What is expected is raised as it is."""
        for pause in (*_PAUSES, None):
            try:
                return self._asked(method, asked)
            except expecting:
                raise
            except _BROKEN as error:
                if pause is None or _is_late(error):
                    raise self._away(error, what) from error
                time.sleep(pause)
            except TException as error:
                raise explained(error, method, what) from error
        raise AssertionError("the last attempt either answers or fails")

    def _asked(self, method: str, asked: Sequence[Any]) -> Any:
        """Carry out one call on a connection that nobody else uses; it is kept for the next call, if it can be."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        try:
            answer = getattr(connection.client, method)(*asked)
        except _BROKEN:
            connection.close()
            while self._idle:  # whatever broke one has probably broken the others
                self._idle.pop().close()
            raise
        except TException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)
        return answer

    def _open(self) -> _Connection:
        for number, uri in enumerate(self._uris, 1):
            try:
                return _Connection(uri, self._timeout)
            except OSError:
                if number == len(self._uris):
                    raise
        raise AssertionError("there is at least one address")

    def _away(self, error: Exception, what: str) -> EventLakeError:
        reason = getattr(error, "inner", None) or getattr(error, "message", None) or error
        return TransientError(
            f"could not {what}: no answer from {', '.join(self._uris)}: {reason}",
            fix="see whether the metastore runs, and speaks plain thrift: neither TLS nor Kerberos; then run it again: "
            "nothing is lost",
        )


def _is_late(error: Exception) -> bool:
    """Whether a server took too long: another attempt would take as long."""
    return isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT
