#include "app/hints.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/option.h"

// ---- ffmpeg's options ----

#define SOUND "sound is copied as it is"
#define TIMES "frames keep the timestamps that they have"
#define AFTERWARDS "; afterwards: ffmpeg -i out.mp4 -map 0 -c copy "

struct hint {
    const char *names; // separated by spaces
    const char *advice;
};

static const struct hint ffmpeg_options[] = {
    {"i", "the input and the output are named without it: sluice in.mp4 out.mp4 (for ffmpeg's -ss, "
          "-t, -vf: --start, --duration, -f)"},
    {"ss", "--start TIME begins there"},
    {"sseof to", "--start TIME begins and --duration TIME ends so much later"},
    {"t", "--duration TIME ends so much after the begin"},
    {"itsoffset itsscale copyts start_at_zero vsync fps_mode async", TIMES},
    {"frames vframes frames:v", "--frames N ends after N frames"},
    {"an", SOUND AFTERWARDS "-an quiet.mp4"},
    {"sn dn", "subtitles and data are copied as they are" AFTERWARDS "-sn -dn plain.mp4"},
    {"vn", "sluice filters the video, so there is always one; for -v and -n write them apart"},
    {"acodec c:a codec:a ar ac af aq b:a ab vol filter:a q:a channel_layout profile:a",
     SOUND ", where the container takes it; ffmpeg encodes it anew afterwards"},
    {"scodec c:s codec:s c:d codec:d", "subtitles are copied as they are, where the container "
                                       "takes them"},
    {"c codec vcodec codec:v",
     "-c:v ENCODER names the encoder; what is not the video is copied anyway"},
    {"vf filter:v filter_complex lavfi af:v filter_complex_script",
     "-f CHAIN names the stages, as in -f 'gray,gaussian=1.4'; 'sluice stages' lists them"},
    {"b vb", "-b:v RATE says how many bits a second"},
    {"q:v qscale qscale:v qp",
     "--crf N says the quality where the encoder has it, else --option: --option qmax=5"},
    {"r", "--rate FPS is of raw video, devices and image sequences; others keep their own times"},
    {"framerate", "--rate FPS is of raw video, devices and image sequences"},
    {"s video_size", "--size WxH is of raw video and devices; sluice does not resize"},
    {"aspect autorotate noautorotate display_rotation display_hflip display_vflip",
     "shape and rotation are carried over as they are"},
    {"pix_fmt pixel_format",
     "--pix-fmt NAME before INPUT says what raw video and devices have, behind it what the "
     "output gets"},
    {"color_range", "--range limited|full says what the output's code values are"},
    {"f", ""}, // sluice's own
    {"hwaccel", "--hwdec auto|require|off says whether the GPU decodes, --backend cuda|cpu what "
                "filters"},
    {"hwaccel_device init_hw_device filter_hw_device gpu", "--device N says which GPU"},
    {"hwaccel_output_format extra_hw_frames",
     "frames stay on the GPU where they can; --hwdec and --backend say where things run"},
    {"filter_threads filter_complex_threads", "--threads N is of the filters"},
    {"loglevel debug report", "-q prints errors only, -v more, FFmpeg's own messages included"},
    {"hide_banner nostdin stdin nostats stats_period stats",
     "it is not needed here: leave it out; -q leaves the progress out"},
    {"progress", "--json FILE writes the summary for programs, --metrics PORT shows how it goes"},
    {"benchmark benchmark_all", "the summary tells what each part took; see 'sluice bench'"},
    {"map", "--stream N says which video is filtered; all else is copied"},
    {"map_metadata map_chapters metadata disposition program",
     "tags, chapters and dispositions are copied" AFTERWARDS "-metadata title=... tagged.mp4"},
    {"movflags tune g bf refs maxrate minrate bufsize profile profile:v level x264-params "
     "x264opts x265-params sc_threshold keyint_min coder cpu-used row-mt deadline quality lossless "
     "hls_time hls_list_size hls_flags sws_flags rc cq colorspace color_primaries "
     "color_trc",
     NULL}, // as "--option KEY=VALUE"
    {"segment_time", "--segment TIME writes files so long"},
    {"re readrate", "--live plays a file at its own pace"},
    {"stream_loop loop", "sluice reads its input once"},
    {"start_number", "a sequence begins with the lowest number that is there"},
    {"rtsp_transport", "--rtsp-transport tcp|udp"},
    {"timeout stimeout rw_timeout",
     "--open-timeout TIME and --stall-timeout TIME say how long a source is waited for"},
    {"list_devices sources sinks devices", "--list-devices shows cameras and screens"},
    {"encoders codecs decoders formats muxers demuxers protocols pix_fmts filters bsfs hwaccels",
     "'ffmpeg' lists them; 'sluice stages' lists what filters, 'sluice doctor' what would run"},
    {"pass passlogfile", "sluice reads its input once; --crf N or -b:v RATE set the quality"},
    {"shortest apad", "the output ends with what is filtered"},
    {"bsf bsf:v vbsf absf tag tag:v vtag", "ffmpeg does it afterwards: ffmpeg -i out.mp4 -c copy"},
    {"target", "-c:v and the output's extension say how it is encoded"},
    {"deinterlace", "sluice does not deinterlace; it filters each field by itself"},
    {"safe concat", "sluice opens only the file that it is given: join the parts before"},
};

enum { FFMPEG_OPTIONS = sizeof ffmpeg_options / sizeof *ffmpeg_options };

// True if `word`, of so many letters, is one of the list's.
static bool lists(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t each = strcspn(at, " ");
        if (each == length && !strncmp(at, word, length))
            return true;
        at += each;
    }
    return false;
}

// ffmpeg's -v and -strict take a value, sluice's do not: it would be taken for a file.
static bool hint_at_value(const char *name, const char *next)
{
    bool level =
        !strcmp(name, "v") && next &&
        lists("quiet panic fatal error warning info verbose debug trace", next, strlen(next));
    bool strict = !strcmp(name, "strict") && next &&
                  lists("-2 -1 experimental unofficial normal strict very", next, strlen(next));
    if ((!level && !strict) || !access(next, F_OK))
        return false;
    if (level)
        fprintf(stderr, "sluice: -v takes no level as '%s'; -q prints errors only, -v more\n",
                next);
    else
        fprintf(stderr,
                "sluice: --strict takes no value as '%s' (it makes damaged input a "
                "failure); the encoder's is --option strict=%s\n",
                next, next);
    return true;
}

bool hint_at_ffmpeg_option(const char *text, const char *next)
{
    if (text[0] != '-' || !text[1] || text[1] == '-')
        return false;
    const char *name = text + 1;
    size_t length = strcspn(name, "=");
    if (hint_at_value(name, next))
        return true;
    for (int k = 0; k < FFMPEG_OPTIONS; k++) {
        const struct hint *hint = &ffmpeg_options[k];
        if (!lists(hint->names, name, length) || (hint->advice && !*hint->advice))
            continue;
        if (hint->advice)
            fprintf(stderr, "sluice: there is no option '%s', which is ffmpeg's: %s\n", text,
                    hint->advice);
        else
            fprintf(stderr,
                    "sluice: there is no option '%s', which is ffmpeg's: --option %.*s=%s gives it "
                    "to the encoder or the container\n",
                    text, (int)strcspn(name, ":="), name, next && *next != '-' ? next : "VALUE");
        return true;
    }
    return false;
}

bool hint_at_format(const char *chain)
{
    static const char formats[] =
        "rawvideo yuv4mpegpipe y4m matroska mkv mp4 mov webm avi flv mpegts hls dash image2 "
        "image2pipe mjpeg gif nut ogg wav s16le h264 hevc v4l2 x11grab lavfi fbdev concat rtsp "
        "rtp segment framemd5 framehash md5 sdl sdl2 avfoundation dshow gdigrab";
    if (!lists(formats, chain, strlen(chain)))
        return false;
    fprintf(stderr,
            "sluice: -f is '%s', and takes a chain of stages; a format is named by -F, before "
            "INPUT or behind it: -F %s%s\n",
            chain, chain,
            lists("v4l2 x11grab lavfi fbdev", chain, strlen(chain))
                ? " (and a device with its kind in front: v4l2:/dev/video0, lavfi:testsrc)"
                : "");
    return true;
}

// ---- unknown options ----

bool is_letter_group(const char *text, const char *letters)
{
    for (const char *at = text + 1; *at; at++) {
        const char *found = *at == ':' || *at == '-' ? NULL : strchr(letters, *at);
        if (!found)
            return false;
        if (found[1] == ':')
            return true; // the rest is its value
    }
    return true;
}

enum { MAX_NAME = 31, MAX_NAMES = 64 };

// Letters to insert, delete or replace; both words have up to MAX_NAME.
static int distance(const char *a, int a_length, const char *b, int b_length)
{
    int row[MAX_NAME + 1];
    for (int x = 0; x <= b_length; x++)
        row[x] = x;
    for (int y = 1; y <= a_length; y++) {
        int diagonal = row[0];
        row[0] = y;
        for (int x = 1; x <= b_length; x++) {
            int above = row[x], best = diagonal + (a[y - 1] != b[x - 1]);
            best = above + 1 < best ? above + 1 : best;
            row[x] = row[x - 1] + 1 < best ? row[x - 1] + 1 : best;
            diagonal = above;
        }
    }
    return row[b_length];
}

// The name that is spelled nearly so: two letters in three are right. NULL: there is none.
static const char *nearest(const char *word, size_t length, const char *const *names)
{
    const char *best = NULL;
    int least = length > MAX_NAME ? 0 : (int)(length + 2) / 3;
    for (; *names && length > 1; names++) {
        size_t other = strlen(*names);
        if (other > MAX_NAME)
            continue;
        int longer = (int)other - (int)length, apart = longer < 0 ? -longer : longer;
        if (apart <= least) // else too much is missing, or too many
            apart = distance(word, (int)length, *names, (int)other);
        if (!strncmp(*names, word, length) && length > 2)
            apart = 0;
        if (apart <= least && (apart < least || !best)) {
            least = apart;
            best = *names;
        }
    }
    return best;
}

void refuse_option(const char *text, const char *const *names)
{
    const char *name = text + strspn(text, "-");
    const char *near = nearest(name, strcspn(name, "="), names);
    fprintf(stderr, "sluice: there is no option '%s'; ", text);
    if (near)
        fprintf(stderr, "did you mean '%s%s'? ", strchr(near, ':') ? "-" : "--", near);
    fprintf(stderr, "'sluice --help' lists them\n");
}

// The names of all stages, ended by NULL.
static void list_stages(const char *names[MAX_NAMES + 1])
{
    struct sluice_stage_info stage = {.size = sizeof stage};
    int count = 0;
    for (; count < MAX_NAMES && !sluice_stage(count, &stage); count++)
        names[count] = stage.name;
    names[count] = NULL;
}

void refuse_stage(const char *name)
{
    const char *names[MAX_NAMES + 1];
    list_stages(names);
    const char *near = nearest(name, strlen(name), names);
    fprintf(stderr, "sluice: there is no stage '%s'; ", name);
    if (near)
        fprintf(stderr, "did you mean '%s'? ", near);
    fprintf(stderr, "'sluice stages' lists them\n");
}

void refuse_topic(const char *topic)
{
    const char *bare = topic + strspn(topic, "-");
    const char *stages[MAX_NAMES + 1], *others[MAX_OPTIONS + MAX_NAMES + 1];
    const struct option_row *row;
    int count = 0;
    list_stages(stages);
    for (int s = 0; option_sections[s]; s++)
        others[count++] = option_sections[s]->name;
    for (int k = 0; (row = option_at(k)); k++)
        others[count++] = row->name;
    assert(count <= MAX_OPTIONS + MAX_NAMES);
    others[count] = NULL;
    const char *near = nearest(bare, strlen(bare), bare == topic ? stages : others);
    near = near ? near : nearest(bare, strlen(bare), others);
    fprintf(stderr, "sluice: there is no section, option or stage '%s'; ", topic);
    if (near)
        fprintf(stderr, "did you mean '%s'? ", near);
    fprintf(stderr, "'sluice --help' and 'sluice stages' list them\n");
}
