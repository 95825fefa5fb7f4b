/* The terminal of `occq live`, and its loop; see live.h. A signalfd delivers signals one by one. */
#define NCURSES_WIDECHAR 1
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "live.h"
#include "support/clock.h"

#define SECOND_NS INT64_C(1000000000)
enum { ESCAPE_MS = 25, CPU_SHARE = 100, SLOWER_MAX = 10 };

/* ---- terminal ---- */

struct terminal {
    SCREEN *screen;
    int signals; /* descriptor */
    sigset_t taken;
};

static void set_colours(void)
{
    const char *no_colour = getenv("NO_COLOR");
    static const short colours[] = {COLOR_RED, COLOR_CYAN, COLOR_GREEN};
    bool has = !(no_colour && no_colour[0]) && start_color() == OK && use_default_colors() == OK;
    for (size_t i = 0; has && i < sizeof colours / sizeof *colours; i++)
        (void)init_pair((short)(i + 1), colours[i], -1);
}

/* Asks the terminal for its size: curses prefers COLUMNS and LINES, which a shell may have exported long ago.
 */
static void take_size(void)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
        (void)resizeterm(size.ws_row, size.ws_col);
}

static int begin(struct terminal *t, struct occ_error *err)
{
    static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
    const char *type = getenv("TERM");
    (void)sigemptyset(&t->taken);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        (void)sigaddset(&t->taken, taken[i]);
    (void)sigprocmask(SIG_BLOCK, &t->taken, NULL);
    t->signals = signalfd(-1, &t->taken, SFD_CLOEXEC | SFD_NONBLOCK);
    t->screen = t->signals >= 0 ? newterm(NULL, stdout, stdin) : NULL;
    if (!t->screen || !tigetstr("cup") || !tigetstr("clear"))
        return occ_fail(
            err, OCC_E_INVALID,
            "the terminal '%.32s' (TERM) is not known or cannot move its cursor; -b prints plain text",
            type ? type : "");
    take_size();
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)curs_set(0);
    (void)set_escdelay(ESCAPE_MS);
    set_colours();
    return 0;
}

static void end(struct terminal *t)
{
    if (t->screen) {
        (void)curs_set(1);
        (void)move(LINES - 1, 0); /* the prompt's line on a terminal without an alternate screen */
        (void)clrtoeol();
        (void)refresh();
        (void)endwin();
        delscreen(t->screen);
    }
    occ_close_fd(&t->signals);
    (void)sigprocmask(SIG_UNBLOCK, &t->taken, NULL);
}

/* Stops the process; the shell has the terminal until SIGCONT. */
static void stop(void)
{
    sigset_t it;
    (void)endwin();
    (void)sigemptyset(&it);
    (void)sigaddset(&it, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &it, NULL);
    (void)sigprocmask(SIG_BLOCK, &it, NULL);
}

/* Handles pending signals. Returns a signal that ends the program; 0: none. */
static int take_signals(struct terminal *t)
{
    struct signalfd_siginfo info;
    while (read(t->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number != SIGTSTP && number != SIGCONT && number != SIGWINCH)
            return number;
        if (number == SIGTSTP)
            stop();
        if (number != SIGWINCH) {
            (void)reset_prog_mode();
            (void)clearok(curscr, TRUE);
        }
        take_size();
    }
    return 0;
}

/* ---- the loop ---- */

static void take_answer(struct live_ui *ui)
{
    struct live_sample *sample = live_source_take(ui->source);
    if (!sample)
        return;
    ui->asking = false;
    if (sample->err.code == 0 && !live_record(&ui->model, &sample->kernels))
        (void)occ_no_memory(&ui->err);
    (void)live_arrange(&ui->model, sample, live_is_held(ui));
    live_sample_free(ui->sample);
    ui->sample = sample;
    (void)live_choose_columns(ui->args, sample, &ui->columns, &ui->err);
}

/* Returns the pause between samples: queries use at most 1 % of a processor, but the pause is at most
 * SLOWER_MAX intervals. */
static int64_t pause_after(const struct live_ui *ui)
{
    int64_t interval_ns = ui->args->interval_ns, by_cost_ns = ui->sample ? ui->sample->cpu_ns * CPU_SHARE : 0;
    if (by_cost_ns > interval_ns * SLOWER_MAX)
        by_cost_ns = interval_ns * SLOWER_MAX;
    return by_cost_ns > interval_ns ? by_cost_ns : interval_ns;
}

static void take_keys(struct live_ui *ui)
{
    int key = 0;
    while (!ui->ends && (key = getch()) != ERR)
        live_press(ui, key);
}

/* Waits for a key, a signal, an answer, or a page's text. Returns false if the terminal is closed. */
static bool wait_for_something(const struct live_ui *ui, const struct terminal *t, int64_t until_ns)
{
    struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0},
                           {t->signals, POLLIN, 0},
                           {live_source_fd(ui->source), POLLIN, 0},
                           {ui->page.fd, POLLIN, 0}};
    int64_t left_ns = until_ns - occ_monotonic_ns();
    (void)poll(fds, sizeof fds / sizeof *fds, left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0);
    return !(fds[0].revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Runs the view. Returns the signal that ended it; 0: a key, or a closed terminal. */
static int loop(struct live_ui *ui, struct terminal *t)
{
    int64_t asked_ns = 0, window_ns = 0;
    int number = 0;
    while (!ui->ends && number == 0) {
        int64_t now_ns = occ_monotonic_ns(), next_ns = asked_ns + pause_after(ui);
        if (!ui->paused_ns && !ui->asking && (now_ns >= next_ns || window_ns != ui->window_ns)) {
            live_source_ask(ui->source, window_ns = ui->window_ns);
            ui->asking = true;
            asked_ns = now_ns;
        }
        live_draw(ui);
        bool quiet = ui->paused_ns || ui->asking || next_ns > now_ns + SECOND_NS || next_ns < now_ns;
        if (!wait_for_something(ui, t, quiet ? now_ns + SECOND_NS : next_ns))
            break;
        number = take_signals(t);
        take_answer(ui);
        live_page_read(&ui->page);
        take_keys(ui);
    }
    return number;
}

static int run(struct live_ui *ui, struct occ_error *err, int *ret_signal)
{
    struct terminal terminal = {.signals = -1};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return occ_fail(err, OCC_E_INVALID, "a live view needs a terminal; -b prints plain text");
    int status = begin(&terminal, err);
    if (status == 0)
        status = live_source_new(&ui->args->history, &ui->source, err);
    if (status == 0)
        *ret_signal = loop(ui, &terminal);
    end(&terminal);
    live_source_free(ui->source);
    live_page_close(&ui->page);
    return status;
}

int live_run(const struct cli_command *command, const struct live_args *args)
{
    struct occ_error err = OCC_ERROR_INIT;
    struct live_ui ui = {
        .args = args, .page = LIVE_NO_PAGE, .window_ns = args->window_ns, .model.order = live_loss_column()};
    int number = 0, status = live_choose_columns(args, NULL, &ui.columns, &err);
    ui.ascii = live_is_ascii(args);
    if (status == 0)
        status = run(&ui, &err, &number);
    live_sample_free(ui.sample);
    live_model_release(&ui.model);
    if (number) {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
    return status == 0 ? CLI_EXIT_OK : cli_failure(command, &err);
}
