occq show -d h.db too_many
