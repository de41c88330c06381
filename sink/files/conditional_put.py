"""Objects of an S3-compatible store that are written only if there is none of their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from obstore import put
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from ...errors import Retryable, SinkError

_HTTP: Final = "AWS_ALLOW_HTTP"


def put_if_absent(store: str, url: str, access: Mapping[str, str], name: str, content: bytes) -> bool:
    """Write an object below a URL; return False if there is one. `store` is for errors, `access` has options
    in the names of object_store.

    Raises Retryable if the store doesn't answer, after which the object may be there, and SinkError if it
    refuses.
    """
    options = {key: value for key, value in access.items() if key.startswith("AWS_") and key != _HTTP}
    client = {"timeout": access["timeout"], "allow_http": _HTTP in access}
    try:
        put(
            S3Store.from_url(url, config=options, client_options=client),  # type: ignore[arg-type]
            name,
            content,
            mode="create",
        )
    except (AlreadyExistsError, PreconditionError):
        return False
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise SinkError(f"{store}: the store refuses to write {name}: {error}") from error
    except (BaseError, OSError) as error:
        raise Retryable(f"{store}: the store doesn't answer as it should: {error}") from error
    return True
