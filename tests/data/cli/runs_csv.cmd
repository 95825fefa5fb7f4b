occq runs -d h.db --csv -o +lost_causes,command_line
