#include "app/option.h"

#include "app/app.h"

static const struct option_row rows[] = {
    {
        .name = "page",
        .commands = FOR_A_RUN,
        .instead = "serve has --listen ADDRESS",
        OF_RUN(page_address),
        .argument = "ADDRESS",
        .help = "show a run in browsers and change it there: PORT (this machine only) or HOST:PORT",
        .details = "The run waits for no visitor, and without one its pictures cost nothing.",
        .suggested = "8080 127.0.0.1:0",
    },
    {
        .name = "listen",
        .commands = FOR(SERVE),
        .instead = "a run has --page ADDRESS",
        OF_RUN(listen),
        .argument = "ADDRESS",
        .initial = "127.0.0.1:8080",
        .help = "address of 'sluice serve': PORT (this machine only) or HOST:PORT; port 0 is any",
        .suggested = "8080 127.0.0.1:0 0.0.0.0:8080",
    },
    {
        .name = "media",
        OF_RUN(media),
        .argument = "DIR",
        .completes = COMPLETE_FILES,
        .initial = "none",
        .help = "folder of the inputs that visitors may choose, of their uploads and recordings",
        .details = "Nothing outside of it is opened: links in it are not followed.",
    },
    {
        .name = "keep",
        OF_RUN(keep),
        .argument = "TIME",
        .positive = true,
        .initial = "30 s",
        .help = "time kept for pausing, stepping and scrubbing, 256 MB of packets at most",
    },
    {
        .name = "token",
        .set = set_token,
        .argument = "TOKEN",
        .indirect = true,
        .secret = true,
        .wanted = "up to 200 letters, digits and -._~+/=",
        .initial = "none on loopback, else one that is made and printed",
        .help = "what visitors need to know: letters, digits and -._~+/=",
    },
    {
        .name = "tls-cert",
        OF_RUN(tls_cert),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "certificate (PEM), for https",
    },
    {
        .name = "tls-key",
        OF_RUN(tls_key),
        .argument = "FILE",
        .completes = COMPLETE_FILES,
        .help = "its private key (PEM)",
    },
    {
        .name = "upload-max",
        OF_RUN(upload_max),
        .set = set_bytes,
        .argument = "BYTES",
        .wanted = "a number of bytes, as in 500M or 4G",
        .initial = "4G",
        .help = "size of the largest upload, as in 500M",
        .suggested = "100M 1G 4G",
    },
    {0},
};

const struct option_section section_page = {
    .name = "page",
    .commands = FOR_A_RUN | FOR(SERVE),
    .title = "Control page ('sluice serve', and --page of any run)",
    .about =
        "An address other than loopback can be reached by others: they need the token, and see "
        "it on the way unless there is a certificate.",
    .rows = rows,
};
