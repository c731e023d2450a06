"""`array_record.beam.testdata`: a few rows to try a pipeline on."""

from typing import Any

data: list[dict[str, Any]] = [
    {
        "Age": 34,
        "Movie": ["Metropolis", "Nosferatu"],
        "Movie Ratings": [8.5, 7.75],
        "Suggestion": "M",
        "Suggestion Purchased": 1.0,
        "Purchase Price": 4.5,
    },
    {
        "Age": 27,
        "Movie": ["The General", "City Lights", "Safety Last!"],
        "Movie Ratings": [9.0, 9.25, 8.0],
        "Suggestion": "Modern Times",
        "Suggestion Purchased": 0.0,
        "Purchase Price": 6.25,
    },
    {
        "Age": 61,
        "Movie": ["Sunrise"],
        "Movie Ratings": [8.75],
        "Suggestion": "The Last Laugh",
        "Suggestion Purchased": 1.0,
        "Purchase Price": 3.0,
    },
]
