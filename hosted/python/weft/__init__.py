"""Group communication that survives the failures of its members.

A program that ``weft run -n 4 -- python3 app.py`` starts is a member of a cluster::

    import weft

    member = weft.join()
    member.put((member.rank + 1) % member.size, b"through your memory")
    with member.take(timeout=5.0) as message:
        print(message.sender, bytes(message.payload))

``weft.watch`` shows a cluster to a program that is no member, and ``weft.Broadcast`` needs no
cluster: one writer, many readers, on one host.
"""

from weft._errors import Ended, Error
from weft._watch import WatchEvent, watch
from weft._weft import (
    Broadcast,
    BroadcastReader,
    Delivery,
    Event,
    Group,
    GroupDelivery,
    Member,
    Message,
    Notice,
    Offer,
    Tensor,
    View,
    join,
)

__all__ = [
    "Broadcast",
    "BroadcastReader",
    "Delivery",
    "Ended",
    "Error",
    "Event",
    "Group",
    "GroupDelivery",
    "Member",
    "Message",
    "Notice",
    "Offer",
    "Tensor",
    "View",
    "WatchEvent",
    "join",
    "watch",
]
