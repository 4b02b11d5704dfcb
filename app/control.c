// `sluice ctl`: a line for the control socket of a run, and its answer.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "control/buffer.h"
#include "control/socket.h"

// A line of the words; the name of a file from here, since the job may be elsewhere.
static bool add_words(struct buffer *line, char *const *word, int words, bool overwrite)
{
    char folder[4096];
    bool file = words > 1 && !strcmp(word[0], "snapshot"), added = true;
    const char *before = file && overwrite ? "-y " : "";
    if (file && *word[1] != '/' && getcwd(folder, sizeof folder - 1))
        strcat(folder, "/");
    else
        *folder = 0;
    for (int k = 0; k < words && added; k++)
        added = (k != 1 || (buffer_add(line, before, strlen(before)) &&
                            buffer_add(line, folder, strlen(folder)))) &&
                buffer_add(line, word[k], strlen(word[k])) &&
                buffer_add(line, k + 1 < words ? " " : "\n", 1);
    return added;
}

static void send_line(int fd, const struct buffer *line)
{
    size_t done = 0;
    ssize_t sent = 0;
    for (; done < line->size && sent >= 0; done += (size_t)sent) {
        sent = send(fd, line->data + done, line->size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            sent = 0;
    }
}

// Read until a line is whole or nothing more comes; true if it is whole.
static bool receive_line(int fd, struct buffer *line)
{
    char data[16384];
    for (;;) {
        ssize_t got = recv(fd, data, sizeof data, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || !buffer_add(line, data, (size_t)got))
            return false;
        if (data[got - 1] == '\n') // it answers one line
            return true;
    }
}

// Send the line and print its answer. Returns the exit code.
static int ask(int fd, const char *path, const struct buffer *line)
{
    static const char fine[] = "{\"ok\":true";
    struct buffer answer = {0};
    send_line(fd, line); // its failure shows below; why a client is not served has come by then
    bool whole = receive_line(fd, &answer);
    bool ok = whole && answer.size >= strlen(fine) && !memcmp(answer.data, fine, strlen(fine));
    fwrite(answer.data ? answer.data : "", 1, answer.size, stdout);
    if (!whole)
        fprintf(stderr,
                answer.size ? "\nsluice: the answer of %s breaks off\n"
                            : "sluice: %s ended without an answer\n",
                path);
    buffer_free(&answer);
    return ok ? EXIT_WHOLE : whole ? EXIT_USAGE : EXIT_INPUT;
}

int ctl_command(struct settings *settings)
{
    struct sockaddr_un address;
    struct buffer line = {0};
    if (!settings->topic || !settings->words)
        return fprintf(stderr,
                       "sluice: usage: sluice ctl PATH get|set|chain|stats|snapshot|quit ...\n"),
               EXIT_USAGE;
    if (!socket_address(settings->topic, &address))
        return EXIT_USAGE;
    for (int k = 0; k < settings->words; k++)
        if (strchr(settings->word[k], '\n'))
            return fprintf(stderr, "sluice: a command for %s is one line, and this has several\n",
                           settings->topic),
                   EXIT_USAGE;
    int fd = socket_connect(&address);
    if (fd < 0) {
        fprintf(stderr, "sluice: nobody listens on %s: %s\n", settings->topic, strerror(errno));
        return EXIT_INPUT;
    }
    int code = add_words(&line, settings->word, settings->words, settings->config.overwrite)
                   ? ask(fd, settings->topic, &line)
                   : (fprintf(stderr, "sluice: out of memory\n"), EXIT_OTHER);
    buffer_free(&line);
    close(fd);
    return code;
}
