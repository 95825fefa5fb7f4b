occq sql -d h.db .tables --csv | head -n 3; occq sql -d h.db --schema overhead; occq sql -d h.db ".schema loss" --json; occq sql -d h.db ".schema nothing"; occq sql -d h.db .quit
