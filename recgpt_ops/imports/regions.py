"""ISO 3166 codes of the places that the sources name in words."""

from __future__ import annotations

US_STATES = {
    "Alabama": "AL", "Alaska": "AK", "Arizona": "AZ", "Arkansas": "AR", "California": "CA", "Colorado": "CO", "Connecticut": "CT",
    "Delaware": "DE", "District of Columbia": "DC", "Florida": "FL", "Georgia": "GA", "Hawaii": "HI", "Idaho": "ID", "Illinois": "IL",
    "Indiana": "IN", "Iowa": "IA", "Kansas": "KS", "Kentucky": "KY", "Louisiana": "LA", "Maine": "ME", "Maryland": "MD",
    "Massachusetts": "MA", "Michigan": "MI", "Minnesota": "MN", "Mississippi": "MS", "Missouri": "MO", "Montana": "MT",
    "Nebraska": "NE", "Nevada": "NV", "New Hampshire": "NH", "New Jersey": "NJ", "New Mexico": "NM", "New York": "NY",
    "North Carolina": "NC", "North Dakota": "ND", "Ohio": "OH", "Oklahoma": "OK", "Oregon": "OR", "Pennsylvania": "PA",
    "Puerto Rico": "PR", "Rhode Island": "RI", "South Carolina": "SC", "South Dakota": "SD", "Tennessee": "TN", "Texas": "TX",
    "Utah": "UT", "Vermont": "VT", "Virginia": "VA", "Washington": "WA", "West Virginia": "WV", "Wisconsin": "WI", "Wyoming": "WY",
}  # fmt: skip

# As Online Retail spells them. The Channel Islands are two ISO territories that the source does not tell apart; their holidays
# and seasons are those of Great Britain, so they count as GB.
COUNTRIES = {
    "Australia": "AU", "Austria": "AT", "Bahrain": "BH", "Belgium": "BE", "Bermuda": "BM", "Brazil": "BR", "Canada": "CA",
    "Channel Islands": "GB", "Cyprus": "CY", "Czech Republic": "CZ", "Denmark": "DK", "EIRE": "IE", "Finland": "FI", "France": "FR",
    "Germany": "DE", "Greece": "GR", "Hong Kong": "HK", "Iceland": "IS", "Israel": "IL", "Italy": "IT", "Japan": "JP", "Korea": "KR",
    "Lebanon": "LB", "Lithuania": "LT", "Malta": "MT", "Netherlands": "NL", "Nigeria": "NG", "Norway": "NO", "Poland": "PL",
    "Portugal": "PT", "RSA": "ZA", "Saudi Arabia": "SA", "Singapore": "SG", "Spain": "ES", "Sweden": "SE", "Switzerland": "CH",
    "Thailand": "TH", "USA": "US", "United Arab Emirates": "AE", "United Kingdom": "GB",
}  # fmt: skip

NO_COUNTRY = ("European Community", "Unspecified", "West Indies")  # these name no single country
