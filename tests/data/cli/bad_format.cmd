occq runs --json --csv
