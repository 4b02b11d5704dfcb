// The rule of what an input may reach, one for all kinds of them: the protocols and formats that
// libavformat may use for it, and what it may open besides itself.
//
//   input                    protocols                  formats                 opens besides
//   file, stdin, template    none, its bytes are read   containers, images      nothing
//                            for it
//   sequence of images       file                       image2                  its images
//   rtsp, rtp                those, and what carries    the protocol's own,     nothing
//                            them                       containers
//   http, https              those, data, crypto        containers, HLS         its own host, and
//                                                                               hosts that are
//                                                                               allowed
//   other addresses          its own, tcp, tls          containers              nothing
//   device                   libavdevice's business
//
// Lists of other files (ffconcat, SDP, DASH, ...) are read for nobody, HLS from HTTP only. From an
// https host nothing is fetched by http. Segments are not redirected.
//
// A reach is counted, since the thread of a connection may outlive everybody else.
//
// Thread-safety: any thread.
#pragma once

#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stddef.h>

struct reach_request {
    const char *url;   // of an address; NULL: a file
    const char *hosts; // (optional) that a playlist may name: "cdn.example,*.example.org", or "any"
    bool tls_verify;   // insist on a valid certificate
    const char *ca_file; // (optional) of those who sign them; NULL: the system's
};

struct reach;

// NULL without memory. Nothing of the request is needed afterwards.
struct reach *reach_create(const struct reach_request *request);
struct reach *reach_ref(struct reach *reach); // NULL is fine
void reach_unref(struct reach **reach);

// The protocols for an address, by its scheme; NULL: its scheme is not opened.
const char *reach_protocols(const char *url);

// True if an input may be in this format.
bool reach_allows(const struct reach *reach, const AVInputFormat *format);

// Hold a context to it, ahead of avformat_open_input() with these options. Takes format->opaque and
// format->io_open; a count of the reach has to last as long as the context. An AVERROR below zero
// without memory: it is not held to anything then.
int reach_bind(struct reach *reach, AVFormatContext *format, AVDictionary **options);

// Take the refusal since the last call, without secrets and with the reason; false: there is none.
bool reach_take_refusal(struct reach *reach, char *why, size_t size);

// The identity of the other side of a connection.
enum reach_peer {
    REACH_PEER_PLAIN,      // not encrypted, or not opened yet
    REACH_PEER_UNVERIFIED, // encrypted, with whomever
    REACH_PEER_VERIFIED,
};
enum reach_peer reach_peer(const struct reach *reach);
const char *reach_peer_name(const struct reach *reach); // "verified", "unverified"; NULL: plain

// An addition to an "Input/output error" of a connection, which may be that the certificate was not
// valid; "" where nobody insists on that, and for NULL, as devices have it.
const char *reach_doubt(const struct reach *reach);

// True if this FFmpeg can verify the other side of such an address.
bool reach_can_verify(const char *url);

// Find the format of the bytes: by content where the extension alone says that it is one of several
// images, or text. Returns the score (AVPROBE_SCORE_MAX: 100), or AVERROR_INVALIDDATA for none.
int reach_probe(AVIOContext *io, const char *url, AVFormatContext *context,
                const AVInputFormat **format);
