// The command line: one table for the parser and the help.
#include <getopt.h>
#include <libgen.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/hints.h"

enum id {
    ID_CHAIN = 256,
    ID_BACKEND,
    ID_HWDEC,
    ID_DEVICE,
    ID_THREADS,
    ID_RING,
    ID_VERIFY,
    ID_FORMAT,
    ID_SIZE,
    ID_RATE,
    ID_PIXFMT,
    ID_START,
    ID_DURATION,
    ID_FRAMES,
    ID_STREAM,
    ID_MAX_PIXELS,
    ID_REPEATABLE,
    ID_SIMULATE,
    ID_LIVE,
    ID_LIST_DEVICES,
    ID_RTSP,
    ID_PLAYLIST_HOSTS,
    ID_TLS_VERIFY,
    ID_CA_FILE,
    ID_OPEN_TIMEOUT,
    ID_STALL_TIMEOUT,
    ID_RECONNECT,
    ID_MAX_LATENCY,
    ID_GAP,
    ID_OUTPUT,
    ID_ENCODER,
    ID_CRF,
    ID_PRESET,
    ID_BITRATE,
    ID_RANGE,
    ID_PIX_FMT,
    ID_OPTION,
    ID_SEGMENT,
    ID_OVERWRITE,
    ID_NEVER,
    ID_STRICT,
    ID_CONTROL,
    ID_JOURNAL,
    ID_REPLAY,
    ID_METRICS,
    ID_JSON,
    ID_CHART,
    ID_QUICK,
    ID_LADDER,
    ID_TRACE,
    ID_QUIET,
    ID_VERBOSE,
    ID_HELP,
    ID_VERSION,
    ID_LAST,
};

struct row {
    enum id id;
    char letter;      // 0: none
    const char *name; // after -- (or - alone)
    const char *argument;
    const char *help;
};

static const struct row rows[] = {
    {0, 0, NULL, NULL, "Filtering"},
    {ID_CHAIN, 'f', "filter", "CHAIN", "stages, as in 'gray,gaussian=1.4,sobel'; 'null' for none"},
    {ID_BACKEND, 0, "backend", "NAME", "auto, cuda, cpu or scalar (the reference)"},
    {ID_HWDEC, 0, "hwdec", "WHEN", "decode on the GPU: auto, require or off"},
    {ID_DEVICE, 0, "device", "N", "which GPU (0); several, as in 0,1 or all, take frames in turn"},
    {ID_THREADS, 0, "threads", "N", "of the CPU backend (one a core)"},
    {ID_RING, 0, "ring", "N", "frames in flight, 1 to 64"},
    {ID_VERIFY, 0, "verify", "[N]", "recompute every Nth frame by the reference (1)"},
    {0, 0, NULL, NULL, "Before INPUT of the input, behind it of the output"},
    {ID_FORMAT, 'F', "format", "FORMAT", "as ffmpeg calls it, where name and content do not tell"},
    {ID_PIX_FMT, 0, "pix-fmt", "NAME",
     "what raw video and devices have (also mjpeg); what the output\n"
     "                               gets (what the encoder takes and plays everywhere)"},
    {ID_PIXFMT, 0, "pixfmt", "NAME", NULL}, // former name: the input's, wherever it stands
    {0, 0, NULL, NULL, "Input"},
    {ID_SIZE, 0, "size", "WxH", "of raw video and devices, and of bench's frames"},
    {ID_RATE, 0, "rate", "FPS", "of raw video, devices and image sequences (25)"},
    {ID_START, 0, "start", "TIME", "begin there; seconds or [HH:]MM:SS"},
    {ID_DURATION, 0, "duration", "TIME", "end so much later"},
    {ID_FRAMES, 0, "frames", "N", "end after N frames"},
    {ID_STREAM, 0, "stream", "N", "filter this stream (the best video)"},
    {ID_MAX_PIXELS, 0, "max-pixels", "N", "refuse larger pictures (2^28)"},
    {ID_REPEATABLE, 0, "repeatable", NULL,
     "the same frames of damaged input in every run: one thread decodes"},
    {ID_SIMULATE, 0, "simulate", "FAULTS",
     "loss=2%,corrupt=1%,stall=8s@30s,close@40s,ts-jump=-5s@1:00,\n"
     "                               res-change=640x360@1:30,seed=7: what goes wrong, and when"},
    {0, 0, NULL, NULL, "Live input"},
    {ID_LIVE, 0, "live", NULL,
     "a file plays at its own pace; addresses and devices are live anyway"},
    {ID_LIST_DEVICES, 0, "list-devices", NULL,
     "cameras and screens that are here, and their modes"},
    {ID_RTSP, 0, "rtsp-transport", "HOW", "tcp or udp (tcp, then udp)"},
    {ID_PLAYLIST_HOSTS, 0, "playlist-hosts", "HOSTS",
     "that a playlist may name besides its own: a.net,*.b.net or any"},
    {ID_TLS_VERIFY, 0, "tls-verify", NULL, "insist on a valid certificate of https, rtsps, rtmps"},
    {ID_CA_FILE, 0, "ca-file", "FILE", "who signs them, as PEM (those that the system trusts)"},
    {ID_OPEN_TIMEOUT, 0, "open-timeout", "TIME", "give up opening after so long (10)"},
    {ID_STALL_TIMEOUT, 0, "stall-timeout", "TIME", "without a picture for so long it is lost (5)"},
    {ID_RECONNECT, 0, "reconnect", "N",
     "attempts to have it back: forever (as is), no, or so many; where it is\n"
     "                               given, also while it is absent at the start"},
    {ID_MAX_LATENCY, 0, "max-latency", "TIME", "drop frames that are older, as in 120ms (2 s)"},
    {ID_GAP, 0, "gap", "HOW", "while it is lost, show nothing new (skip), freeze, or black"},
    {0, 0, NULL, NULL, "Output (those behind -o are for that output)"},
    {ID_OUTPUT, 'o', "output", "OUTPUT", "one more; may be repeated"},
    {ID_RANGE, 0, "range", "NAME", "of Y'CbCr and gray: limited or full (as the chain leaves it)"},
    {ID_ENCODER, 0, "c:v", "ENCODER", "as ffmpeg calls it (what suits the container)"},
    {ID_CRF, 0, "crf", "N", "quality, of encoders that have it"},
    {ID_PRESET, 0, "preset", "NAME", "speed, of encoders that have it"},
    {ID_BITRATE, 0, "b:v", "RATE", "bits a second, as in 2M"},
    {ID_SEGMENT, 0, "segment", "TIME", "files so long, named by the time, as in 10m"},
    {ID_OPTION, 0, "option", "KEY=VALUE", "for the encoder or the container; may be repeated"},
    {ID_OVERWRITE, 'y', "overwrite", NULL,
     "replace existing files, each once the new one is whole"},
    {ID_NEVER, 'n', "no-overwrite", NULL, "do not (the default), even beside -y"},
    {ID_STRICT, 0, "strict", NULL, "damaged input is a failure: exit 1 instead of 3"},
    {0, 0, NULL, NULL, "Changes while it runs"},
    {ID_CONTROL, 0, "control", "PATH",
     "a socket to ask and change the job by: sluice ctl PATH get"},
    {ID_JOURNAL, 0, "journal", "FILE", "write which chain filtered from when on"},
    {ID_REPLAY, 0, "replay", "FILE", "change as a journal says"},
    {0, 0, NULL, NULL, "Messages"},
    {ID_METRICS, 0, "metrics", "ADDR", "show Prometheus how it goes: PORT (here only), HOST:PORT"},
    {ID_JSON, 0, "json", "FILE", "write the summary for machines"},
    {ID_CHART, 0, "chart", "FILE", "of bench: draw the figures, as SVG"},
    {ID_QUICK, 0, "quick", NULL, "of bench: in seconds, less certain"},
    {ID_LADDER, 0, "ladder", NULL, "of bench: a Gaussian from plain C to CUDA, step by step"},
    {ID_TRACE, 0, "trace", "FILE", "write a timeline of all threads and slots, for Perfetto"},
    {ID_QUIET, 'q', "quiet", NULL, "only errors"},
    {ID_VERBOSE, 'v', "verbose", NULL, "more, FFmpeg's own messages included"},
    {ID_HELP, 'h', "help", NULL, "this"},
    {ID_VERSION, 0, "version", NULL, "of sluice and its libraries"},
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char usage[] =
    "usage: sluice INPUT OUTPUT [-f CHAIN] [options]\n"
    "       sluice stages [NAME]         the stages in a line each, or one of them in full\n"
    "       sluice plan [INPUT] [-f CHAIN]\n"
    "       sluice doctor [INPUT [OUTPUT]]   what would run where, and why\n"
    "       sluice ctl SOCKET get|set|chain|stats|snapshot|quit   of a run with --control\n"
    "       sluice bench [INPUT] [-f CHAIN]  how fast this machine filters\n";

static void print_help(void)
{
    printf(
        "%s\nFilters video: INPUT is decoded, every frame goes through CHAIN (an edge filter by\n"
        "default), OUTPUT is encoded. INPUT is a file, a sequence ('in%%04d.png', '*.png'), an\n"
        "address (rtsp://...), a device (/dev/video0, x11grab::0) or -; OUTPUT is a file, a "
        "sequence,\n"
        "a playlist (live.m3u8), -, an address to publish to (rtsp, rtmp, srt, udp, rtp, tcp),\n"
        "display:, mjpeg:ADDR (for browsers), null: (discard) or hash:FILE. For INPUT, OUTPUT and\n"
        "CHAIN @FILE stands for the text in a file, env:NAME for that of a variable: addresses "
        "hold\n"
        "passwords.\n",
        usage);
    for (int k = 0; k < ROWS; k++) {
        const struct row *row = &rows[k];
        char names[64], letter[8] = "    ";
        if (!row->name) {
            printf("\n%s\n", row->help);
            continue;
        }
        if (!row->help)
            continue;
        if (row->letter)
            snprintf(letter, sizeof letter, "-%c, ", row->letter);
        bool optional = row->argument && row->argument[0] == '[';
        snprintf(names, sizeof names, "%s%s%s%s%s", letter, strchr(row->name, ':') ? "-" : "--",
                 row->name,
                 !row->argument ? ""
                 : optional     ? "[=N]"
                                : " ",
                 row->argument && !optional ? row->argument : "");
        printf("  %-28s %s\n", names, row->help);
    }
    printf(
        "\nExamples\n"
        "  sluice -F rawvideo --size 64x48 --pix-fmt gray - out.mkv    raw video from a pipe\n"
        "  sluice in.mp4 - -F rawvideo --pix-fmt rgb24                 raw video into a pipe\n"
        "  sluice in.mp4 small.mp4 --crf 30 -o whole.mkv -c:v ffv1     each output its own\n"
        "\nExit codes: 0 whole, 1 failed, 2 usage, 3 finished but the input was damaged, 4 input,\n"
        "5 output, 6 device, 129/130/143 stopped by a signal with a whole output.\n");
}

// ---- getopt's tables, from ours ----

struct tables {
    struct option option[ROWS + 1];
    char letters[2 * ROWS + 3];
};

static void make_tables(struct tables *tables)
{
    int count = 0, length = 0;
    *tables = (struct tables){0};
    tables->letters[length++] = '-'; // names come in order, for -F
    tables->letters[length++] = ':';
    for (int k = 0; k < ROWS; k++) {
        const struct row *row = &rows[k];
        if (!row->name)
            continue;
        int argument = !row->argument            ? no_argument
                       : row->argument[0] == '[' ? optional_argument
                                                 : required_argument;
        tables->option[count++] = (struct option){row->name, argument, NULL, row->id};
        if (row->letter) {
            tables->letters[length++] = row->letter;
            if (argument == required_argument)
                tables->letters[length++] = ':';
        }
    }
}

static int id_of_letter(int letter)
{
    for (int k = 0; k < ROWS; k++)
        if (rows[k].letter && rows[k].letter == letter)
            return rows[k].id;
    return letter;
}

// ---- values ----

static int complain(const char *option, const char *value, const char *wanted)
{
    char shown[4300];
    sluice_public_name(value, shown, sizeof shown);
    fprintf(stderr, "sluice: %s%s is '%s'; it takes %s\n", strchr(option, ':') ? "-" : "--", option,
            shown, wanted);
    return EXIT_USAGE;
}

static bool parse_whole(const char *text, double low, double high, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= low && *value <= high && *value == floor(*value);
}

// Seconds ("5", "5s"), milliseconds ("120ms"), minutes ("10m"), hours ("1h"), MM:SS or HH:MM:SS,
// each with a fraction of its last part. What stands behind a colon is below 60.
static bool parse_time(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
    *seconds = 0;
    for (int parts = 0; parts < 3; parts++) {
        char *end;
        double part = strtod(text, &end);
        if (end == text || !(part >= 0) || part > 1e9 || (parts && part >= 60) ||
            (*end == ':' && part != floor(part)))
            return false;
        *seconds = *seconds * 60 + part;
        if (!*end)
            return true;
        for (size_t k = 0; !parts && k < sizeof units / sizeof *units; k++)
            if (!strcmp(end, units[k].name)) {
                *seconds *= units[k].seconds;
                return true;
            }
        if (*end != ':')
            return false;
        text = end + 1;
    }
    return false;
}

static bool parse_word(const char *text, const char *const *words, int *index)
{
    for (*index = 0; words[*index]; ++*index)
        if (!strcmp(text, words[*index]))
            return true;
    return false;
}

static int set_number(enum id id, const char *name, const char *text, struct sluice_config *config)
{
    double value, high = id == ID_RING ? 64 : id == ID_THREADS ? 1024 : 1e15;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a whole number, 1 .. %g", high);
    if (!parse_whole(text, 1, high, &value) || (id == ID_VERIFY && value > 1e9))
        return complain(name, text, wanted);
    switch (id) {
    case ID_THREADS:
        config->threads = (int)value;
        break;
    case ID_RING:
        config->ring = (int)value;
        break;
    case ID_VERIFY:
        config->verify = (int)value;
        break;
    case ID_FRAMES:
        config->frames = (int64_t)value;
        break;
    default:
        config->max_pixels = (int64_t)value;
        break;
    }
    return -1;
}

// The output that options count for: the last that was named, or the first.
static struct sluice_output *current_output(struct settings *settings)
{
    return settings->output_count > 1 ? &settings->outputs[settings->output_count - 2]
                                      : &settings->config.output;
}

static int set_choice(enum id id, const char *name, const char *text, struct settings *settings)
{
    struct sluice_config *config = &settings->config;
    static const char *const backends[] = {"auto", "cuda", "cpu", "scalar", NULL};
    static const char *const hwdecs[] = {"auto", "off", "require", NULL};
    static const char *const gaps[] = {"skip", "freeze", "black", NULL};
    static const char *const ranges[] = {"limited", "full", NULL};
    int index;
    if (id == ID_BACKEND) {
        if (!parse_word(text, backends, &index))
            return complain(name, text, "auto, cuda, cpu or scalar");
        config->backend = (enum sluice_backend)index;
    } else if (id == ID_RANGE) {
        if (!parse_word(text, ranges, &index))
            return complain(name, text, "limited (16 is black) or full (0 is)");
        current_output(settings)->range = (enum sluice_range)(index + 1);
    } else if (id == ID_GAP) {
        if (!parse_word(text, gaps, &index))
            return complain(name, text, "skip, freeze or black");
        config->gap = (enum sluice_gap)index;
    } else {
        if (!parse_word(text, hwdecs, &index))
            return complain(name, text, "auto, require or off");
        config->hwdec = (enum sluice_hwdec)index;
    }
    return -1;
}

static int set_time(const char *name, const char *text, bool zero, double *seconds)
{
    if (!parse_time(text, seconds))
        return complain(name, text, "seconds, MM:SS, HH:MM:SS or as in 120ms, 10m");
    return zero || *seconds > 0 ? -1 : complain(name, text, "more than 0");
}

static int set_reconnects(const char *name, const char *text, int *reconnects, bool *await_start)
{
    double value;
    *await_start = strcmp(text, "no");
    *reconnects = *await_start ? 0 : SLUICE_RECONNECTS_NONE;
    if (!strcmp(text, "no") || !strcmp(text, "forever"))
        return -1;
    if (!parse_whole(text, 1, 1e6, &value))
        return complain(name, text, "forever, no, or a whole number, 1 .. 1000000");
    *reconnects = (int)value;
    return -1;
}

static int set_size(const char *name, const char *text, struct sluice_config *config)
{
    return sluice_parse_size(text, &config->input_width, &config->input_height)
               ? complain(name, text, "WxH, as in 1920x1080")
               : -1;
}

static int set_rate(const char *name, const char *text, struct sluice_config *config)
{
    return sluice_parse_rate(text, &config->input_rate)
               ? complain(name, text, "frames a second, as in 25 or 30000/1001")
               : -1;
}

static int set_stream(const char *name, const char *text, struct sluice_config *config)
{
    double value;
    if (!parse_whole(text, 0, 1e6, &value))
        return complain(name, text, "the index of a stream, from 0");
    config->stream = SLUICE_STREAM((int)value);
    return -1;
}

static int set_crf(const char *name, const char *text, struct sluice_output *output)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 1e3))
        return complain(name, text, "a number from 0, the best quality");
    output->crf = value > 0 ? value : SLUICE_CRF_ZERO;
    return -1;
}

static int set_bitrate(const char *name, const char *text, struct sluice_output *output)
{
    return sluice_parse_bitrate(text, &output->bitrate)
               ? complain(name, text, "bits a second, as in 2M or 500k")
               : -1;
}

static void add_output(struct settings *settings, const char *name)
{
    settings->option_count += settings->output_count > 0; // the end of the list before
    settings->output_count++;
    current_output(settings)->name = name;
}

static void add_option(struct settings *settings, const char *text)
{
    struct sluice_output *output = current_output(settings);
    if (!output->options)
        output->options = &settings->options[settings->option_count];
    settings->options[settings->option_count++] = text;
}

// Options that are kept as they are: texts, also of the current output, and flags that are set.
static const struct {
    enum id id;
    size_t offset; // in struct settings, or sluice_output
} output_texts[] =
    {
        {ID_ENCODER, offsetof(struct sluice_output, encoder)},
        {ID_PRESET, offsetof(struct sluice_output, preset)},
},
  texts[] =
      {
          {ID_CHAIN, offsetof(struct settings, config.chain)},
          {ID_PIXFMT, offsetof(struct settings, config.input_pixfmt)},
          {ID_DEVICE, offsetof(struct settings, config.device)},
          {ID_SIMULATE, offsetof(struct settings, config.simulate)},
          {ID_TRACE, offsetof(struct settings, config.trace)},
          {ID_PLAYLIST_HOSTS, offsetof(struct settings, config.playlist_hosts)},
          {ID_CA_FILE, offsetof(struct settings, config.ca_file)},
          {ID_METRICS, offsetof(struct settings, config.metrics)},
          {ID_CONTROL, offsetof(struct settings, control)},
          {ID_JOURNAL, offsetof(struct settings, journal)},
          {ID_REPLAY, offsetof(struct settings, replay)},
          {ID_JSON, offsetof(struct settings, json)},
          {ID_CHART, offsetof(struct settings, chart)},
},
  flags[] = {
      {ID_LIVE, offsetof(struct settings, config.live)},
      {ID_REPEATABLE, offsetof(struct settings, config.repeatable)},
      {ID_TLS_VERIFY, offsetof(struct settings, config.tls_verify)},
      {ID_OVERWRITE, offsetof(struct settings, config.overwrite)},
      {ID_STRICT, offsetof(struct settings, strict)},
      {ID_QUICK, offsetof(struct settings, quick)},
      {ID_LADDER, offsetof(struct settings, ladder)},
      {ID_QUIET, offsetof(struct settings, quiet)},
      {ID_VERBOSE, offsetof(struct settings, verbose)},
};

// Whether the option was one of those.
static bool keep(struct settings *settings, enum id id, const char *text)
{
    for (size_t k = 0; k < sizeof output_texts / sizeof *output_texts; k++)
        if (output_texts[k].id == id) {
            *(const char **)((char *)current_output(settings) + output_texts[k].offset) = text;
            return true;
        }
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (texts[k].id == id) {
            *(const char **)((char *)settings + texts[k].offset) = text;
            return true;
        }
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
        if (flags[k].id == id) {
            *(bool *)((char *)settings + flags[k].offset) = true;
            return true;
        }
    return false;
}

static const char *name_of(enum id id)
{
    for (int k = 0; k < ROWS; k++)
        if (rows[k].id == id && rows[k].name)
            return rows[k].name;
    return "";
}

// One option. -1: go on; else the exit code.
static int set(struct settings *settings, enum id id, const char *text)
{
    struct sluice_config *config = &settings->config;
    const char *name = name_of(id);
    if (id == ID_CHAIN || id == ID_OUTPUT)
        text = argument_text(settings, text);
    if (!text && (id == ID_CHAIN || id == ID_OUTPUT))
        return EXIT_USAGE;
    if (id == ID_CHAIN && hint_at_format(text))
        return EXIT_USAGE;
    if (keep(settings, id, text))
        return -1;
    switch (id) {
    case ID_BACKEND:
    case ID_HWDEC:
    case ID_GAP:
    case ID_RANGE:
        return set_choice(id, name, text, settings);
    case ID_VERIFY:
        return set_number(id, name, text ? text : "1", config);
    case ID_THREADS:
    case ID_RING:
    case ID_FRAMES:
    case ID_MAX_PIXELS:
        return set_number(id, name, text, config);
    case ID_FORMAT:
        *(config->input ? &current_output(settings)->format : &config->input_format) = text;
        return -1;
    case ID_PIX_FMT:
        *(config->input ? &current_output(settings)->pixfmt : &config->input_pixfmt) = text;
        return -1;
    case ID_SIZE:
        return set_size(name, text, config);
    case ID_RATE:
        return set_rate(name, text, config);
    case ID_STREAM:
        return set_stream(name, text, config);
    case ID_CRF:
        return set_crf(name, text, current_output(settings));
    case ID_BITRATE:
        return set_bitrate(name, text, current_output(settings));
    case ID_START:
        return set_time(name, text, true, &config->start);
    case ID_DURATION:
        return set_time(name, text, false, &config->duration);
    case ID_RTSP:
        config->rtsp_transport = text;
        return strcmp(text, "tcp") && strcmp(text, "udp") ? complain(name, text, "tcp or udp") : -1;
    case ID_OPEN_TIMEOUT:
        return set_time(name, text, false, &config->open_timeout);
    case ID_STALL_TIMEOUT:
        return set_time(name, text, false, &config->stall_timeout);
    case ID_MAX_LATENCY:
        return set_time(name, text, false, &config->max_latency);
    case ID_RECONNECT:
        return set_reconnects(name, text, &config->reconnects, &config->await_start);
    case ID_OUTPUT:
        add_output(settings, text);
        return -1;
    case ID_SEGMENT:
        return set_time(name, text, false, &current_output(settings)->segment);
    case ID_OPTION:
        add_option(settings, text);
        return -1;
    case ID_NEVER:
        settings->never = true;
        return -1;
    case ID_LIST_DEVICES:
        return list_devices();
    case ID_VERSION:
        printf("%s\n", sluice_version());
        return EXIT_WHOLE;
    default:
        print_help();
        return EXIT_WHOLE;
    }
}

// ---- names and commands ----

static int add_name(struct settings *settings, enum command command, const char *name)
{
    struct sluice_config *config = &settings->config;
    if (command == COMMAND_CTL && settings->topic) {
        settings->word[settings->words++] = (char *)name;
        return -1;
    }
    bool topical = command == COMMAND_STAGES || command == COMMAND_CTL;
    const char **place = topical                ? &settings->topic
                         : !config->input       ? &config->input
                         : !config->output.name ? &config->output.name
                                                : NULL;
    if (!place || *place) {
        char shown[4300];
        sluice_public_name(name, shown, sizeof shown);
        fprintf(stderr,
                "sluice: '%s' is one name too many; further outputs are named by -o, and a pattern "
                "of images stands in quotes: 'frames/*.png'\n",
                shown);
        return EXIT_USAGE;
    }
    *place = topical ? name : argument_text(settings, name);
    if (!*place)
        return EXIT_USAGE;
    if (place == &config->output.name)
        settings->output_count = 1;
    return -1;
}

static enum command find_command(int *argc, char ***argv)
{
    static const char *const names[] = {"stages", "plan", "doctor", "bench", "ctl", NULL};
    int index;
    if (*argc == 2 && !strcmp((*argv)[1], "help"))
        (*argv)[1] = (char *)"--help";
    if (*argc > 2 && !strcmp((*argv)[1], "help"))
        (*argv)[1] = (char *)"stages";
    if (*argc < 2 || !parse_word((*argv)[1], names, &index))
        return COMMAND_FILTER;
    ++*argv, --*argc;
    return (enum command)(COMMAND_STAGES + index);
}

static int unknown_option(const char *text)
{
    const char *names[ROWS + 1];
    int count = 0;
    for (int k = 0; k < ROWS; k++)
        if (rows[k].name)
            names[count++] = rows[k].name;
    names[count] = NULL;
    refuse_option(text, names);
    return EXIT_USAGE;
}

// Whether getopt will find a long option in "-name" or "--name=value", which may be shortened.
static bool is_long(const char *text)
{
    const char *name = text + strspn(text, "-");
    for (int k = 0; k < ROWS; k++)
        if (rows[k].name && !strncmp(rows[k].name, name, strcspn(name, "=")))
            return true;
    return false;
}

// An option that getopt did not take: it has no value to give, may be several, or is none.
static int refused_option(const char *text)
{
    if (optopt >= ID_CHAIN && optopt < ID_LAST)
        fprintf(stderr, "sluice: --%s takes no value; it is '%s'\n", name_of((enum id)optopt),
                text);
    else if (is_long(text))
        fprintf(stderr,
                "sluice: '%s' is the beginning of several options; 'sluice --help' lists them\n",
                text);
    else
        return unknown_option(text);
    return EXIT_USAGE;
}

// Words that getopt would take apart letter by letter: -nostdin as -n -o stdin, -hwaccel as -h.
static int check_argument(const struct tables *tables, const char *text, const char *next)
{
    if (text[0] != '-' || !text[1] || !strcmp(text, "--"))
        return -1;
    if (hint_at_ffmpeg_option(text, next))
        return EXIT_USAGE;
    bool known = text[1] == '-' || is_long(text) || is_letter_group(text, tables->letters);
    return known ? -1 : unknown_option(text);
}

static int missing_value(const char *text)
{
    fprintf(stderr, "sluice: %s needs a value; 'sluice --help' says which\n", text);
    return EXIT_USAGE;
}

static int missing_names(const struct settings *settings, enum command command)
{
    const struct sluice_config *config = &settings->config;
    if (settings->ladder && command != COMMAND_BENCH) {
        fprintf(stderr, "sluice: --ladder is of bench; 'sluice bench --ladder'\n");
        return EXIT_USAGE;
    }
    if (command != COMMAND_FILTER || (config->input && config->output.name))
        return -1;
    char shown[4300];
    if (config->input) {
        sluice_public_name(config->input, shown, sizeof shown);
        fprintf(stderr, "sluice: an output is missing; 'sluice %s out.mp4'\n", shown);
    } else
        fprintf(stderr, "%s'sluice --help' says more\n", usage);
    return EXIT_USAGE;
}

// Files beside the output must be none that the run reads or writes otherwise, and may replace
// files only where that was asked for.
static int check_reports(struct settings *settings, enum command command)
{
    if (command != COMMAND_FILTER && command != COMMAND_BENCH)
        return -1;
    const char *const files[] = {settings->json, settings->chart, settings->journal};
    int count = 0;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        if (files[k])
            settings->reserved_outputs[count++] = files[k];
    settings->config.reserved_outputs = settings->reserved_outputs;
    settings->reserved_inputs[0] = settings->replay;
    settings->config.reserved_inputs = settings->reserved_inputs;
    enum sluice_status status = sluice_check_files(&settings->config);
    return status ? exit_code_of(status) : -1;
}

int settings_parse(int argc, char **argv, enum command *command, struct settings *settings)
{
    struct tables tables;
    make_tables(&tables);
    *settings = (struct settings){.outputs = calloc((size_t)argc + 1, sizeof *settings->outputs),
                                  .options = calloc(2 * (size_t)argc + 1, sizeof(char *)),
                                  .word = calloc((size_t)argc + 1, sizeof(char *))};
    settings->config.more_outputs = settings->outputs;
    settings->config.log = terminal_log;
    settings->config.opaque = settings;
    *command = find_command(&argc, &argv);
    settings->config.changed = journal_changed;
    if (!settings->outputs || !settings->options || !settings->word)
        return EXIT_OTHER;
    int code = -1, found, index = 0;
    opterr = 0;
    while (code < 0) {
        int at = optind;
        char shown[4300], next[4300];
        sluice_public_name(at < argc ? argv[at] : "", shown, sizeof shown);
        sluice_public_name(at + 1 < argc ? argv[at + 1] : "", next, sizeof next);
        if (at < argc)
            code = check_argument(&tables, shown, at + 1 < argc ? next : NULL);
        if (code >= 0)
            break;
        found = getopt_long_only(argc, argv, tables.letters, tables.option, &index);
        if (found == -1)
            break;
        if (found == '?')
            code = refused_option(shown);
        else if (found == ':')
            code = missing_value(shown);
        else if (found == 1)
            code = add_name(settings, *command, optarg);
        else
            code = set(settings, (enum id)id_of_letter(found), optarg);
    }
    for (; code < 0 && optind < argc; optind++) // after --
        code = add_name(settings, *command, argv[optind]);
    settings->config.overwrite &= !settings->never;
    if (code < 0)
        code = check_reports(settings, *command);
    return code < 0 ? missing_names(settings, *command) : code;
}

void settings_finish(struct settings *settings)
{
    free(settings->outputs);
    free(settings->options);
    free(settings->word);
    for (int k = 0; k < settings->text_count; k++)
        free(settings->texts[k]);
    free(settings->texts);
    for (int k = 0; k < settings->change_count; k++)
        free((char *)settings->changes[k].chain);
    free(settings->changes);
}
