"""Which track events the demo knows, and how often each happens in which app."""

from __future__ import annotations

from bisect import bisect
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from eventlake.demo import properties, shop
from eventlake.demo.apps import IOS, SERVER, WEB, AppName

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlake.demo.dice import Dice
    from eventlake.demo.people import Person


class Track(NamedTuple):
    """One track event as one app sends it."""

    event: str
    app: AppName
    weight: float
    properties: Callable[[Dice, Person], dict[str, object]]


# By importance: a recipe with few track types takes them from the top.
SEMANTIC = (
    Track("Product Viewed", WEB, 150, shop.product_viewed),
    Track("Product Viewed", IOS, 60, shop.product_viewed),
    Track("Product List Viewed", WEB, 90, shop.product_list),
    Track("Product List Viewed", IOS, 40, shop.product_list),
    Track("Application Opened", IOS, 90, properties.app_opened),
    Track("Product Added", WEB, 50, shop.cart_product),
    Track("Product Added", IOS, 20, shop.cart_product),
    Track("Order Completed", WEB, 10, shop.order),
    Track("Order Completed", SERVER, 12, shop.order),
    Track("Checkout Started", WEB, 20, shop.order),
    Track("Signed Up", SERVER, 7, properties.signed_up),
    Track("Product Clicked", WEB, 80, shop.product),
    Track("Products Searched", WEB, 40, shop.search),
    Track("Cart Viewed", WEB, 30, shop.cart),
    Track("Email Delivered", SERVER, 40, properties.email),
    Track("Email Opened", SERVER, 24, properties.email),
    Track("Application Backgrounded", IOS, 50, properties.nothing),
    Track("Push Notification Received", IOS, 35, properties.push),
    Track("Signed In", WEB, 25, properties.username),
    Track("Signed In", IOS, 15, properties.username),
    Track("Promotion Viewed", WEB, 35, shop.promotion),
    Track("Promotion Clicked", WEB, 9, shop.promotion),
    Track("Experiment Viewed", WEB, 30, properties.experiment),
    Track("Checkout Step Viewed", WEB, 22, shop.checkout_step),
    Track("Checkout Step Completed", WEB, 17, shop.checkout_step),
    Track("Payment Info Entered", WEB, 12, shop.payment),
    Track("Product List Filtered", WEB, 15, shop.product_list_filtered),
    Track("Product Removed", WEB, 10, shop.cart_product),
    Track("Product Added to Wishlist", WEB, 9, shop.wishlist_product),
    Track("Push Notification Tapped", IOS, 9, properties.push),
    Track("Application Updated", IOS, 8, properties.app_updated),
    Track("Application Installed", IOS, 6, properties.app_version),
    Track("Deep Link Opened", IOS, 6, properties.deep_link),
    Track("Install Attributed", IOS, 4, properties.attribution),
    Track("Coupon Entered", WEB, 6, shop.coupon),
    Track("Coupon Applied", WEB, 5, shop.coupon_applied),
    Track("Coupon Denied", WEB, 3, shop.coupon_denied),
    Track("Order Updated", SERVER, 5, shop.order),
    Track("Order Refunded", SERVER, 3, shop.order),
    Track("Trial Started", SERVER, 4, properties.trial),
    Track("Trial Ended", SERVER, 3, properties.trial),
    Track("Account Created", SERVER, 4, properties.account_name),
    Track("Account Added User", SERVER, 4, properties.role),
    Track("Invite Sent", SERVER, 5, properties.invite),
    Track("Email Link Clicked", SERVER, 8, properties.email_link),
    Track("Signed Out", WEB, 6, properties.username),
    Track("Product Shared", WEB, 3, shop.product_shared),
    Track("Product Reviewed", WEB, 4, shop.review),
    Track("Order Cancelled", SERVER, 3, shop.order),
)
_FEATURES_WEIGHT = 300.0  # of all the invented events together, next to some 1,200 of the semantic ones


class TrackMix:
    """The track events of a recipe: `track_types` names, each drawn as often as its weight says."""

    def __init__(self, track_types: int) -> None:
        names = list(dict.fromkeys(track.event for track in SEMANTIC))[:track_types]
        self._tracks = [track for track in SEMANTIC if track.event in names]
        self._tracks += _features(track_types - len(names))
        self._bounds = list(accumulate(track.weight for track in self._tracks))

    def draw(self, dice: Dice) -> Track:
        return self._tracks[bisect(self._bounds, dice.random() * self._bounds[-1])]


def _features(count: int) -> list[Track]:
    """Invent events, each with a set of properties of its own; later ones are rarer, but none very rare."""
    weights = [(number + 10) ** -0.5 for number in range(1, count + 1)]
    scale = _FEATURES_WEIGHT / sum(weights) if weights else 0.0
    apps = (WEB, IOS, SERVER)
    return [
        Track(f"Feature {number} Used", apps[number % 3], weight * scale, properties.feature(number))
        for number, weight in enumerate(weights, start=1)
    ]
