"""The words of the invented company whose events the demo shows: a web shop, its iOS app, its back end."""

from __future__ import annotations

from typing import NamedTuple

SHOP = "https://fernfold.example"
CURRENCIES = ("EUR", "EUR", "EUR", "USD", "GBP", "SEK")
COUPONS = ("SPRING10", "WELCOME5", "FREESHIP", "FRIENDS15", "VIP20")
SHIPPING_METHODS = ("standard", "express", "pickup")
PAYMENT_METHODS = ("card", "paypal", "invoice", "apple_pay")
PLANS = ("free", "starter", "team", "business")
INDUSTRIES = ("Retail", "Hospitality", "Software", "Architecture", "Education", "Health")
ROLES = ("Owner", "Admin", "Editor", "Viewer")

FIRST_NAMES = (
    "Ada", "Amir", "Anouk", "Björn", "Carmen", "Chloé", "Daniel", "Elif", "Emeka", "Freya", "Giulia",
    "Hana", "Ines", "Jakub", "Jun", "Kofi", "Lena", "Luca", "Mara", "Mateo", "Nadia", "Noah", "Olga",
    "Priya", "Rafael", "Sanna", "Selim", "Tomás", "Uma", "Viktor", "Wei", "Yara", "Zoë",
)  # fmt: skip
LAST_NAMES = (
    "Abbott", "Almeida", "Andersen", "Bakker", "Castillo", "Dąbrowski", "Eriksson", "Fischer", "Fontaine",
    "Greco", "Haddad", "Ito", "Jansen", "Kaya", "Kowalski", "Lindqvist", "Moreau", "Nakamura", "Novak",
    "Okafor", "O'Brien", "Petrov", "Quinn", "Rossi", "Santos", "Schneider", "Singh", "Tanaka", "Virtanen",
    "Weber", "Yilmaz", "Zhang",
)  # fmt: skip
COMPANY_NAMES = (
    "Alder Studio", "Blue Kettle", "Cedar & Sons", "Delta Interiors", "Eastgate Hotels", "Field Office",
    "Glasshouse", "Harbour Labs", "Inkwell", "Juniper Schools", "Kiln Works", "Mosaic Living", "North Pier",
)  # fmt: skip


class City(NamedTuple):
    name: str
    country: str
    locale: str
    timezone: str
    latitude: float
    longitude: float


CITIES = (
    City("Berlin", "Germany", "de-DE", "Europe/Berlin", 52.5200, 13.4050),
    City("Hamburg", "Germany", "de-DE", "Europe/Berlin", 53.5511, 9.9937),
    City("Amsterdam", "Netherlands", "nl-NL", "Europe/Amsterdam", 52.3676, 4.9041),
    City("Stockholm", "Sweden", "sv-SE", "Europe/Stockholm", 59.3293, 18.0686),
    City("London", "United Kingdom", "en-GB", "Europe/London", 51.5072, -0.1276),
    City("Lyon", "France", "fr-FR", "Europe/Paris", 45.7640, 4.8357),
    City("Lisbon", "Portugal", "pt-PT", "Europe/Lisbon", 38.7223, -9.1393),
    City("Chicago", "United States", "en-US", "America/Chicago", 41.8781, -87.6298),
    City("Toronto", "Canada", "en-CA", "America/Toronto", 43.6532, -79.3832),
    City("Tokyo", "Japan", "ja-JP", "Asia/Tokyo", 35.6762, 139.6503),
)


class Browser(NamedTuple):
    platform: str
    mobile: bool
    user_agent: str
    brand: str | None = None  # told apart from the user agent by the Chromium family only


BROWSER_VERSION = "141"
_CHROME = f"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{BROWSER_VERSION}.0.0.0"
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
_ANDROID = "Mozilla/5.0 (Linux; Android 10; K)"
_WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64"
BROWSERS = (
    Browser("Windows", False, f"{_WINDOWS}) {_CHROME} Safari/537.36", "Google Chrome"),
    Browser("macOS", False, f"{_MAC} {_CHROME} Safari/537.36", "Google Chrome"),
    Browser("Android", True, f"{_ANDROID} {_CHROME} Mobile Safari/537.36", "Google Chrome"),
    Browser("macOS", False, f"{_MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15"),
    Browser("iOS", True, "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15"),
    Browser("Windows", False, f"{_WINDOWS}; rv:143.0) Gecko/20100101 Firefox/143.0"),
)


class Phone(NamedTuple):
    model: str
    width: int
    height: int


PHONES = (
    Phone("iPhone14,5", 390, 844),
    Phone("iPhone15,3", 430, 932),
    Phone("iPhone16,1", 393, 852),
    Phone("iPhone17,3", 393, 852),
    Phone("iPad13,16", 820, 1180),
)
IOS_VERSIONS = ("17.6.1", "18.3", "18.5", "18.6.2", "26.0")
APP_VERSIONS = (("4.11.2", "1187"), ("4.12.0", "1203"), ("4.12.1", "1209"))
CARRIERS = ("Telekom", "Vodafone", "Orange", "KPN", "AT&T")
SCREENS = ("Home", "Search", "Product", "Cart", "Checkout", "Orders", "Wishlist", "Settings", "Store Finder")

# Name of the page, category, path; what people see most is listed more than once.
PAGES = (
    ("Home", None, "/"),
    ("Home", None, "/"),
    ("Search Results", "Search", "/search"),
    ("Cart", "Checkout", "/cart"),
    ("Checkout", "Checkout", "/checkout/address"),
    ("Order Confirmation", "Checkout", "/checkout/thanks"),
    ("Journal Article", "Journal", "/journal/how-to-oil-a-table"),
    ("Journal Article", "Journal", "/journal/a-small-flat-in-porto"),
    ("Returns", "Help", "/help/returns"),
    ("Delivery", "Help", "/help/delivery"),
    ("Account", "Account", "/account/orders"),
)
REFERRERS = ("", "", "", "https://www.google.com/", "https://duckduckgo.com/", "https://www.pinterest.com/")
# Source, medium, name, content of the campaigns that bring people to the shop.
CAMPAIGNS = (
    ("google", "cpc", "brand_search", "text_ad_2"),
    ("newsletter", "email", "october_edit", "hero"),
    ("instagram", "paid_social", "oak_collection", "carousel_b"),
    ("affiliate", "referral", "interiors_blog", "sidebar"),
)
SEARCHES = ("oak table", "linen", "lamp", "wool rug 160x230", "bed frame", "gift", "shelf", "blå vase")
PROMOTIONS = ("Autumn Sale", "Free Delivery Week", "New: Oak Collection", "Outlet")
EXPERIMENTS = ("Checkout One Page", "Sticky Cart", "Larger Photos")
EMAILS = ("Your order is on its way", "October edit", "You left something behind", "How did we do?")
REASONS = ("Coupon expired", "Minimum value not reached", "Coupon already used")
REVIEWS = ("Lovely, exactly as shown.", "Good, but it took two weeks.", "Darker than the photo.")

# Category, name, price in cents.
PRODUCTS = (
    ("Tables", "Oak Dining Table", 74900),
    ("Tables", "Folding Side Table", 8900),
    ("Tables", "Ash Desk", 42900),
    ("Chairs", "Spindle Chair", 15900),
    ("Chairs", "Stacking Stool", 6450),
    ("Chairs", "Reading Chair", 38900),
    ("Lighting", "Paper Pendant", 4995),
    ("Lighting", "Brass Wall Light", 12900),
    ("Lighting", "Desk Lamp", 7995),
    ("Textiles", "Linen Duvet Cover", 11900),
    ("Textiles", "Wool Throw", 8450),
    ("Textiles", "Cotton Towel", 1895),
    ("Textiles", "Jute Rug", 16900),
    ("Kitchen", "Stoneware Bowl", 1650),
    ("Kitchen", "Enamel Pot", 5990),
    ("Kitchen", "Olive Wood Board", 3450),
    ("Kitchen", "Glass Carafe", 2290),
    ("Storage", "Wall Shelf", 9900),
    ("Storage", "Peg Rail", 3990),
    ("Storage", "Laundry Basket", 4490),
    ("Garden", "Terracotta Planter", 2790),
    ("Garden", "Bistro Set", 21900),
    ("Decor", "Blue Vase", 3290),
    ("Decor", "Round Mirror", 10900),
)
BRANDS = ("Fern & Fold", "Hallen", "Atelier Nord", "Mezzo")
VARIANTS = ("natural", "black", "white", "forest")
