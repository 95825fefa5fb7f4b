occq runs -d h.db --json
