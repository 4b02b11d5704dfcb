#include "base/secrets.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The key that services for broadcasters give out: a last part of the path at least so long.
enum { RTMP_KEY = 16 };

// Called with each secret of a text, from its beginning to its end.
struct visitor {
    void (*secret)(void *opaque, const char *begin, const char *end);
    void *opaque;
    bool cut; // the text goes on, nobody knows how
};

// An address in a text. Another one may begin in it, as in the value of a parameter.
struct address {
    const char *scheme, *authority, *end; // the end, or where another begins
    const char *last;                     // the end in any case
    bool comma;                           // ends what follows the host
};

static bool is_scheme_letter(char c)
{
    return isalnum((unsigned char)c) || strchr("+-.", c);
}

// True if it was hidden before; in a sentence that holds a chain, up to a comma.
static bool is_hidden(const char *begin, const char *end)
{
    const char *at = begin;
    while (at < end && *at == '*')
        at++;
    return at == end || (at > begin && *at == ',');
}

static void report(const struct visitor *visitor, const char *begin, const char *end)
{
    assert(begin <= end);
    if (!is_hidden(begin, end))
        visitor->secret(visitor->opaque, begin, end);
}

int secrets_has_name(const char *name, size_t length)
{
    static const char *const words[] = {"pass", "pwd",  "token", "secret",
                                        "key",  "auth", "sig",   NULL};
    char lower[64] = "";
    for (size_t k = 0; k < length && k < sizeof lower - 1; k++)
        lower[k] = (char)tolower((unsigned char)name[k]);
    for (int k = 0; words[k]; k++)
        if (strstr(lower, words[k]))
            return true;
    return false;
}

// The first of `letters` in [begin, end), or `end`.
static const char *find_any(const char *begin, const char *end, const char *letters)
{
    while (begin < end && !strchr(letters, *begin))
        begin++;
    return begin;
}

// ---- quotes ----

static bool is_quote(char c)
{
    return c == '\'' || c == '"';
}

// The quote of a chain that a letter leaves open: `open` before it, 0 for none.
static char quote_after(char open, char c)
{
    if (open)
        return c == open ? 0 : open;
    return is_quote(c) ? c : 0;
}

static char quote_behind(char open, const char *begin, const char *end)
{
    for (; begin < end; begin++)
        open = quote_after(open, *begin);
    return open;
}

// The first of `letters` outside of quotes.
static const char *find_unquoted(const char *begin, const char *end, const char *letters)
{
    char open = 0;
    for (; begin < end && (open || !strchr(letters, *begin)); begin++)
        open = quote_after(open, *begin);
    return begin;
}

// ---- the user ----

static bool is_http(const struct address *address)
{
    return !strncmp(address->scheme, "http", 4);
}

// True if "HOST:PORT" stands ahead of the path.
static bool has_port(const char *authority, const char *path)
{
    const char *colon = find_any(authority, path, ":");
    return colon + 1 < path && colon + 1 + strspn(colon + 1, "0123456789") == path;
}

// True if the authority is an IPv6 address, with no user ahead of it. "[" may begin a user, too.
static bool is_ipv6(const char *authority, const char *end)
{
    const char *c = authority + 1;
    int colons = 0;
    if (authority == end || *authority != '[')
        return false;
    for (; c < end && (isxdigit((unsigned char)*c) || strchr(":.", *c)); c++)
        colons += *c == ':';
    if (c < end && *c == '%') // a zone
        c = find_any(c, end, "]@/?#");
    return colons > 1 && c < end && *c == ']' && (c + 1 == end || strchr(":/?#,", c[1]));
}

// The '@' behind which the host stands; NULL: there is none. A password with one of "/?#," in it,
// which should have been escaped, ends the authority for whoever connects, and is one all the same;
// but in paths of HTTP, and in values of parameters, an '@' is a letter like others.
static const char *find_at(const struct address *address)
{
    const char *begin = address->authority, *end = address->end;
    const char *path = find_any(begin, end, "/?#"), *found = NULL;
    bool ipv6 = is_ipv6(begin, end), whole = find_any(begin, path, "@") < path || ipv6;
    bool plain = whole || find_any(begin, path, ":") == path || has_port(begin, path);
    if (is_http(address) && plain)
        end = path;
    bool parameters = false, value = false;
    for (const char *c = begin; c < end; c++) {
        parameters |= *c == '?' || *c == '#' || *c == ',';
        value |= parameters && *c == '=';
        if (*c == '@' && !(plain && value))
            found = c;
    }
    return ipv6 ? NULL : found;
}

// Report the password, or a name that stands alone, which may be a token. Returns where the host
// begins.
static const char *visit_user(const struct address *address, const struct visitor *visitor)
{
    const char *at = find_at(address), *begin = address->authority;
    if (!at)
        return begin;
    const char *colon = find_any(begin, at, ":@/?#"); // behind another '@' it is a port's
    if (*colon == ':')
        begin = colon + 1;
    report(visitor, begin, at);
    return at + 1;
}

// ---- what follows the host ----

static const char *visit_key(const struct address *address, const char *path,
                             const struct visitor *visitor)
{
    const char *end = find_any(path, address->end, address->comma ? "?#," : "?#"), *last = end;
    while (last > path && last[-1] != '/')
        last--;
    if (strncmp(address->scheme, "rtmp", 4) || last == path || end - last < RTMP_KEY)
        return path;
    report(visitor, last, end);
    return end;
}

// The password in SRT's stream, which may be "publish:NAME:USER:PASSWORD", or a list of its own; `end`
// where there is none.
static const char *find_password(const char *begin, const char *end)
{
    const char *colon = find_any(begin, end, ":");
    const char *second = colon < end ? find_any(colon + 1, end, ":") : end;
    return second == end ? end : *begin == '#' ? begin : second + 1;
}

// Where a secret value ends. With what looks like another address in it nobody knows: at the very end.
static const char *end_of_secret(const struct address *address, const char *value)
{
    const char *end = address->comma ? find_unquoted(value, address->last, "&,")
                                     : find_any(value, address->last, "&");
    return end > address->end ? address->last : end;
}

// Returns where it came to, the address's end or behind it.
static const char *visit_parameters(const struct address *address, const char *at,
                                    const struct visitor *visitor)
{
    while (at < address->end) {
        const char *end = find_any(at, address->end, "=&?#");
        if (end < address->end && *end == '=') {
            const char *value = end + 1, *value_end = end_of_secret(address, value);
            bool id = end - at >= 8 && !strncmp(end - 8, "streamid", 8);
            bool runs_on = value_end > address->end;
            if (id && !runs_on)
                value = find_password(value, value_end);
            if (id || secrets_has_name(at, (size_t)(end - at))) {
                report(visitor, value, value_end);
                end = value_end;
            }
        }
        at = end + (end < address->end);
    }
    return at;
}

// ---- finding addresses ----

// Where the quoted text that holds `at` ends: at a quote that no other one follows at once, as
// 'one'"'"'s text' has them.
static const char *end_of_quoted(const char *at, const char *end, char quote)
{
    for (;;) {
        while (at < end && *at != quote)
            at++;
        if (end - at < 2 || !is_quote(at[1]))
            return at;
        quote = at[1];
        at += 2;
    }
}

// Where an address ends in a sentence. A quote within it, as passwords have, is followed by more of it.
static const char *find_end_in_sentence(const char *begin, const char *end)
{
    while (begin < end) {
        begin = find_any(begin, end, " \t\r\n'\"<>");
        if (begin == end || !is_quote(*begin) || !isalnum((unsigned char)begin[1]))
            break;
        begin++;
    }
    return begin;
}

// Find where an address begins within another one, whose authority is at `begin`: not there, as a
// password that begins with "//" makes no scheme of the user. NULL: nowhere.
static const char *find_scheme(const char *begin)
{
    for (const char *mark = begin; (mark = strstr(mark, "://")); mark++) {
        const char *scheme = mark;
        while (scheme > begin && is_scheme_letter(scheme[-1]))
            scheme--;
        if (scheme < mark && scheme > begin)
            return scheme;
    }
    return NULL;
}

// Find the next address from `from` on, where a quote may be open.
static bool find_address(const char *from, char open, enum secrets_in in, struct address *address)
{
    const char *mark = strstr(from, "://");
    if (!mark)
        return false;
    *address = (struct address){.scheme = mark, .authority = mark + 3};
    while (address->scheme > from && is_scheme_letter(address->scheme[-1]))
        address->scheme--;
    const char *next = find_scheme(address->authority);
    const char *end = address->authority + strlen(address->authority);
    char quote = in == SECRETS_IN_CHAIN ? quote_behind(open, from, mark) : 0;
    address->comma = in == SECRETS_IN_CHAIN && !quote;
    if (quote)
        end = end_of_quoted(address->authority, end, quote);
    else if (in == SECRETS_IN_CHAIN)
        end = find_unquoted(address->authority, end, " \t\r\n");
    else if (in == SECRETS_IN_SENTENCE)
        end = find_end_in_sentence(address->authority, end);
    address->last = end;
    address->end = next && next < end ? next : end;
    return true;
}

// Returns where it came to, the address's end or behind it.
static const char *visit_address(struct address address, const struct visitor *visitor)
{
    if (visitor->cut && !*address.last) {
        report(visitor, address.authority, address.last);
        return address.last;
    }
    const char *host = visit_user(&address, visitor);
    if (address.comma)
        address.end = find_unquoted(host, address.end, ",");
    const char *path = find_any(host, address.end, "/?#");
    return visit_parameters(&address, visit_key(&address, path, visitor), visitor);
}

static void pass(void *opaque, const char *begin, const char *end)
{
    (void)opaque, (void)begin, (void)end;
}

static void visit(const char *text, enum secrets_in in, const struct visitor *visitor)
{
    const struct visitor silent = {.secret = pass, .cut = visitor->cut};
    struct address address;
    const char *from = text, *next;
    for (char open = 0; find_address(from, open, in, &address); from = next) {
        next = visit_address(address, &silent); // a quote in it may not be there afterwards
        open = quote_behind(open, from, next);
        visit_address(address, visitor);
    }
}

// ---- texts without them ----

struct copy {
    const char *from; // what was not copied yet
    char *to;
    size_t room; // without the last byte
};

static void append(struct copy *copy, const char *text, size_t length)
{
    size_t fits = length < copy->room ? length : copy->room;
    memcpy(copy->to, text, fits);
    copy->to += fits;
    copy->room -= fits;
}

static void append_hidden(void *copy_, const char *begin, const char *end)
{
    struct copy *copy = copy_;
    append(copy, copy->from, (size_t)(begin - copy->from));
    append(copy, "***", 3);
    copy->from = end;
}

static void copy_text(const char *text, enum secrets_in in, bool cut, char *to, size_t size)
{
    struct copy copy = {text, to, size - 1};
    assert(text && to && size > 0);
    const struct visitor visitor = {append_hidden, &copy, cut};
    visit(text, in, &visitor);
    append(&copy, copy.from, strlen(copy.from));
    *copy.to = 0;
}

void secrets_copy(const char *text, enum secrets_in in, char *to, size_t size)
{
    copy_text(text, in, false, to, size);
}

void secrets_copy_cut(const char *sentence, char *to, size_t size)
{
    copy_text(sentence, SECRETS_IN_SENTENCE, true, to, size);
}

char *secrets_dup(const char *text, enum secrets_in in)
{
    size_t size = 3 * strlen(text) + 1; // every letter could be a secret
    char *copy = malloc(size);
    if (copy)
        secrets_copy(text, in, copy, size);
    return copy;
}

static void blank(void *opaque, const char *begin, const char *end)
{
    (void)opaque;
    memset((char *)begin, '*', (size_t)(end - begin));
}

void secrets_blank(char *text, enum secrets_in in)
{
    const struct visitor visitor = {.secret = blank};
    visit(text, in, &visitor);
}
