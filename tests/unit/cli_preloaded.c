/* What test programs get preloaded in place of the real library: nothing happens. Any thread. */
extern const int cli_preloaded_nothing;
const int cli_preloaded_nothing = 0;
