"""One form of a moment on all pages, and none in which the month could be taken for the day: 30 Nov 2026, 14:05."""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j M Y, H:i"
