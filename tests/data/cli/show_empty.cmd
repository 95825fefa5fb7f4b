occq show -d h.db ''
