#include "plan/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/op_info.h"
#include "plan/plan_buffers.h"
#include "plan/plan_join.h"

struct plan_block {
    struct plan_block *next;
    max_align_t bytes[];
};

// State of the build besides the plan itself.
struct builder {
    struct plan *plan;
    const struct program *program;
    struct plan_limits limits;
    int *uses;             // of each program plane: by operations, and once by the outputs
    struct operand *place; // of each program plane: where it is in memory, if it is
    bool *placed;          // ... and whether
    bool done[MAX_PICTURES * FORMAT_COMPONENTS]; // of the outputs' components: a pass makes it
    bool *analysed;                              // of each analysis: a pass makes it
    enum status status;
};

static void *plan_alloc(struct builder *builder, size_t bytes)
{
    struct plan_block *block = calloc(1, sizeof *block + bytes);
    if (!block) {
        builder->status = STATUS_MEMORY;
        return NULL;
    }
    block->next = builder->plan->blocks;
    builder->plan->blocks = block;
    return block->bytes;
}

static const struct op *definition(const struct program *program, int plane)
{
    return plane < FORMAT_COMPONENTS ? NULL : &program->op[plane - FORMAT_COMPONENTS];
}

// ---- passes ----

static struct plan_pass *append_pass(struct builder *builder)
{
    struct plan *plan = builder->plan;
    struct plan_pass *passes = realloc(plan->pass, (size_t)(plan->passes + 1) * sizeof *passes);
    if (!passes) {
        builder->status = STATUS_MEMORY;
        return NULL;
    }
    plan->pass = passes;
    passes[plan->passes] = (struct plan_pass){.analysis = -1, .reads = -1, .together = 1};
    return &passes[plan->passes++];
}

static int append_buffer(struct builder *builder, struct program_plane grid)
{
    struct plan *plan = builder->plan;
    struct plan_buffer *buffers =
        realloc(plan->buffer, (size_t)(plan->buffers + 1) * sizeof *buffers);
    if (!buffers) {
        builder->status = STATUS_MEMORY;
        return 0;
    }
    plan->buffer = buffers;
    buffers[plan->buffers] = (struct plan_buffer){grid};
    return plan->buffers++;
}

static bool is_identity(const uint16_t *table, size_t entries)
{
    for (size_t x = 0; x < entries; x++)
        if (table[x] != x)
            return false;
    return true;
}

// Fold `count` pointwise operations into one step. Returns false if they come to nothing.
static bool fold_table(struct builder *builder, const struct op *const *ops, int count,
                       int depth_in, struct plan_step *step)
{
    size_t entries = (size_t)1 << depth_in;
    int depth_out = builder->program->plane[ops[count - 1]->result].depth;
    uint16_t *table = plan_alloc(builder, entries * sizeof *table);
    const struct op **folded = plan_alloc(builder, (size_t)count * sizeof(struct op *));
    if (!table || !folded)
        return false;
    for (size_t x = 0; x < entries; x++)
        table[x] = (uint16_t)x;
    for (int k = 0; k < count; k++)
        op_apply_all(ops[k], table, entries);
    if (depth_in == depth_out && is_identity(table, entries))
        return false;
    memcpy(folded, ops, (size_t)count * sizeof *folded);
    *step = (struct plan_step){.table = table,
                               .depth_in = depth_in,
                               .depth_out = depth_out,
                               .folded = folded,
                               .folded_count = count};
    return true;
}

// True if a stencil is to be made by transforms, which rounding has to forgive.
static bool transforms(const struct builder *builder, const struct op *op, int depth)
{
    const struct op_info *info = op_info(op);
    return info->transforms && info->transforms(op, &builder->limits, depth);
}

// The steps of one pass: the operations ops[0 .. count - 1].
static void append_steps(struct builder *builder, struct plan_pass *pass,
                         const struct op *const *ops, int count)
{
    pass->step = plan_alloc(builder, (size_t)(count + 1) * sizeof *pass->step);
    int depth = pass->load_depth;
    for (int k = 0; k < count && !builder->status;) {
        int run = k;
        while (run < count && op_is_pointwise(ops[run]))
            run++;
        if (run > k) {
            if (fold_table(builder, ops + k, run - k, depth, &pass->step[pass->steps]))
                pass->steps++;
        } else {
            run = k + 1;
            pass->halo_x += op_radius_x(ops[k]);
            pass->halo_y += op_radius_y(ops[k]);
            pass->step[pass->steps++] =
                (struct plan_step){.stencil = ops[k],
                                   .transform = transforms(builder, ops[k], depth),
                                   .depth_in = depth,
                                   .depth_out = depth};
        }
        depth = builder->program->plane[ops[run - 1]->result].depth;
        k = run;
    }
}

// How many of the operations fit one pass that reads `source`, or a mix. None, if something else
// than plain samples in memory precedes what must read these: a stencil too large to follow
// anything, which wants all rows, or an operation on the full frame.
static int fitting(const struct builder *builder, const struct plan_pass *pass,
                   const struct op *const *ops, int count)
{
    const struct op *mix = pass->mix;
    int stencils = 0, sum = 0;
    for (int k = 0; k < count; k++) {
        if (op_is_full_frame(ops[k]))
            return k > 0 ? k
                         : !mix && plan_is_plain(builder->plan, pass->source[0], pass->load_depth);
        if (!op_is_stencil(ops[k]))
            continue;
        int rx = op_radius_x(ops[k]), ry = op_radius_y(ops[k]);
        int radius = rx > ry ? rx : ry;
        sum += radius;
        if (radius > builder->limits.radius && (k > 0 || mix))
            return k;
        if (++stencils > 1 && (stencils > builder->limits.stencils || sum > builder->limits.radius))
            return k;
    }
    return count;
}

static struct operand materialised(struct builder *builder, int plane);
static void make(struct builder *builder, int plane, const struct operand *target, int targets);

// The way to a plane that is still to go: operations, or a mix and operations, from planes that are
// in memory.
struct route {
    const struct op *const *ops;
    int count;
    const struct op *mix;
    struct plan_step before[3];
    struct operand source[3];
    int plane[3];
    int sources;
};

// The source of a chain of operations: a plane that is in memory, or a mix of such.
static void set_source(struct builder *builder, struct plan_pass *pass, const struct route *route)
{
    pass->mix = route->mix;
    pass->sources = route->sources;
    for (int k = 0; k < route->sources; k++) {
        pass->source[k] = route->source[k];
        pass->source_grid[k] = builder->program->plane[route->plane[k]];
        pass->before[k] = route->before[k];
    }
    pass->load_depth =
        builder->program->plane[route->mix ? route->mix->result : route->plane[0]].depth;
}

// True if a walk back from program plane `plane` ends at `from`, because that is in memory anyway.
static bool is_in_memory(const struct builder *builder, int from, int plane)
{
    return from < FORMAT_COMPONENTS || builder->placed[from] ||
           (builder->uses[from] > 1 && from != plane);
}

// Append the passes that make analysis number `analysis`, if there are none yet: with the plane
// beside it, where that is read.
static void make_analysis(struct builder *builder, int analysis)
{
    int plane = builder->program->op[builder->program->analysis[analysis]].result;
    if (builder->analysed[analysis])
        return;
    if (builder->uses[plane])
        materialised(builder, plane);
    else
        make(builder, plane, NULL, 0);
}

// The operation that is a pass by itself, after what it reads.
static void set_full_frame(struct builder *builder, struct plan_pass *pass, const struct op *op)
{
    const struct program *program = builder->program;
    int reads = op_reads_analysis(op);
    pass->full_frame = op;
    pass->analysis = program_analysis(program, (int)(op - program->op));
    pass->reads = reads < 0 ? -1 : program_analysis(program, reads);
    if (pass->analysis >= 0)
        builder->analysed[pass->analysis] = true;
}

// True if a mix reads samples of its own grid only.
static bool is_on_one_grid(const struct program *program, const struct op *mix)
{
    struct program_plane to = program->plane[mix->result];
    for (int s = 0; s < mix->sources; s++) {
        struct program_plane from = program->plane[mix->source[s]];
        if (from.shift_x != to.shift_x || from.shift_y != to.shift_y)
            return false;
    }
    return true;
}

// Fold what is pointwise between source `s` of a route's mix and a plane in memory into a table of
// the mix, unless somebody else reads that, or it changes the depth.
static void fold_source(struct builder *builder, struct route *route, int s)
{
    const struct program *program = builder->program;
    const struct op **ops = plan_alloc(builder, (size_t)(program->ops + 1) * sizeof(struct op *));
    int plane = route->plane[s], depth = program->plane[plane].depth, count = 0;
    while (ops && plane >= FORMAT_COMPONENTS && !builder->placed[plane] &&
           builder->uses[plane] == 1 && op_is_pointwise(definition(program, plane))) {
        const struct op *op = definition(program, plane);
        ops[program->ops - ++count] = op;
        plane = op->source[0];
    }
    if (!count || program->plane[plane].depth != depth ||
        !is_in_memory(builder, plane, route->plane[s]))
        return;
    fold_table(builder, ops + program->ops - count, count, depth, &route->before[s]);
    route->plane[s] = plane;
}

// Walk back from `plane` to what is in memory, collecting operations last to first.
static void find_route(struct builder *builder, int plane, struct route *route)
{
    const struct program *program = builder->program;
    const struct op **ops = plan_alloc(builder, (size_t)(program->ops + 1) * sizeof(struct op *));
    *route = (struct route){.plane = {plane}, .sources = 1};
    while (ops && !is_in_memory(builder, route->plane[0], plane) && !route->mix) {
        const struct op *op = definition(program, route->plane[0]);
        if (op_is_mix(op)) {
            route->mix = op;
            route->sources = op->sources;
            memcpy(route->plane, op->source, sizeof route->plane);
        } else {
            ops[program->ops - ++route->count] = op;
            route->plane[0] = op->source[0];
        }
    }
    if (ops)
        route->ops = ops + program->ops - route->count;
    for (int s = 0; s < route->sources && route->mix && is_on_one_grid(program, route->mix); s++)
        fold_source(builder, route, s);
    for (int k = 0; k < route->sources && !builder->status; k++)
        route->source[k] = materialised(builder, route->plane[k]);
}

// True if an operation on the full frame can write there.
static bool takes_full_frame(const struct builder *builder, const struct operand *target,
                             int targets, int depth)
{
    return !targets || (targets == 1 && plan_is_plain(builder->plan, target[0], depth));
}

// The pass that goes as far along the route as one can. Returns whether it may write the targets.
static bool make_part(struct builder *builder, struct plan_pass *pass, struct route *route,
                      const struct operand *target, int targets)
{
    set_source(builder, pass, route);
    int run = fitting(builder, pass, route->ops, route->count);
    bool full_frame = run && op_is_full_frame(route->ops[0]);
    int result = run          ? route->ops[run - 1]->result
                 : route->mix ? route->mix->result
                              : route->plane[0];
    if (full_frame)
        set_full_frame(builder, pass, route->ops[0]);
    else
        append_steps(builder, pass, route->ops, run);
    pass->grid = builder->program->plane[result];
    *route = (struct route){
        .ops = route->ops + run, .count = route->count - run, .plane = {result}, .sources = 1};
    return !full_frame || takes_full_frame(builder, target, targets, pass->grid.depth);
}

// Append the passes that make program plane `plane` and put it into the targets, if there are any.
static void make(struct builder *builder, int plane, const struct operand *target, int targets)
{
    struct route route;
    bool made = false;
    find_route(builder, plane, &route);
    while (!made && !builder->status) {
        int reads = route.count ? op_reads_analysis(route.ops[0]) : -1;
        if (reads >= 0)
            make_analysis(builder, program_analysis(builder->program, reads));
        struct plan_pass *pass = append_pass(builder);
        if (builder->status)
            return;
        made = make_part(builder, pass, &route, target, targets) && !route.count;
        if (made) {
            for (; pass->targets < targets; pass->targets++)
                pass->target[pass->targets] = target[pass->targets];
        } else {
            struct operand buffer = {PLACE_BUFFER, append_buffer(builder, pass->grid)};
            pass->target[0] = route.source[0] = buffer;
            pass->targets = 1;
        }
    }
}

// The components of outputs that a pass is still to make of `plane`, `most` of them at most.
static int find_targets(const struct builder *builder, int plane, struct operand *target, int most)
{
    const struct program *program = builder->program;
    int count = 0;
    for (int k = 0; k < program_pictures(program) * FORMAT_COMPONENTS && count < most; k++) {
        int n = k / FORMAT_COMPONENTS, c = k % FORMAT_COMPONENTS;
        const struct format *format = program_format(program, n);
        if (!builder->done[k] && format_has(format, c) &&
            program_out(program, n)[c].plane == plane &&
            builder->plan->picture[n].plane[format->component[c].plane].origin == PLANE_COMPUTED)
            target[count++] = (struct operand){PLACE_OUTPUT, k};
    }
    return count;
}

static void make_targets(struct builder *builder, int plane, const struct operand *target,
                         int targets)
{
    for (int k = 0; k < targets; k++)
        if (target[k].place == PLACE_OUTPUT)
            builder->done[target[k].index] = true;
    make(builder, plane, target, targets);
}

// Where a plane that several read, or a mix reads, is in memory; made on first demand, and put into
// outputs on the way: in one of them it is found again, or else in a buffer.
static struct operand materialised(struct builder *builder, int plane)
{
    struct operand target[FORMAT_COMPONENTS];
    if (plane < FORMAT_COMPONENTS)
        return (struct operand){PLACE_INPUT, plane};
    if (builder->placed[plane])
        return builder->place[plane];
    struct program_plane grid = builder->program->plane[plane];
    int targets = find_targets(builder, plane, target + 1, FORMAT_COMPONENTS - 1), first = 1;
    target[0] = (struct operand){PLACE_CONSTANT, 0};
    for (int k = targets; k > 0; k--)
        if (plan_is_plain(builder->plan, target[k], grid.depth))
            target[0] = target[k];
    if (target[0].place == PLACE_CONSTANT) {
        target[0] = (struct operand){PLACE_BUFFER, append_buffer(builder, grid)};
        first = 0;
    }
    if (!builder->status)
        make_targets(builder, plane, target + first, targets + 1 - first);
    builder->placed[plane] = true;
    return builder->place[plane] = target[0];
}

// ---- output planes ----

static bool stored_in(const struct format *format, int c, int plane)
{
    return format_stores(format, c) && format->component[c].plane == plane;
}

// True if plane `p` of picture `n` has the same bytes as some plane of the input, and which.
static bool is_reference(const struct program *program, int n, int p, int *source)
{
    const struct format *in = &program->input, *out = program_format(program, n);
    *source = -1;
    for (int c = 0; c < FORMAT_COMPONENTS; c++) {
        if (!stored_in(out, c, p))
            continue;
        bool filler = !format_has(out, c);
        if (!filler && program_out(program, n)[c].plane != c)
            return false;
        if (filler && !in->filler)
            return false;
        struct component a = in->component[c], b = out->component[c];
        if (*source >= 0 && *source != a.plane)
            return false;
        *source = a.plane;
        if (a.offset != b.offset || a.step != b.step || a.bytes != b.bytes || a.shift != b.shift ||
            a.big_endian != b.big_endian || in->depth != out->depth)
            return false;
    }
    return true;
}

static bool is_constant(const struct program *program, int n, int p)
{
    const struct format *out = program_format(program, n);
    for (int c = 0; c < FORMAT_COMPONENTS; c++)
        if (stored_in(out, c, p) && format_has(out, c) && program_out(program, n)[c].plane >= 0)
            return false;
    return true;
}

// A pass that writes one value everywhere.
static void make_constant(struct builder *builder, int n, int c, int value)
{
    const struct format *out = program_format(builder->program, n);
    struct plan_pass *pass = append_pass(builder);
    if (!pass)
        return;
    pass->source[0] = (struct operand){PLACE_CONSTANT, value};
    pass->sources = 1;
    pass->target[0] = (struct operand){PLACE_OUTPUT, n * FORMAT_COMPONENTS + c};
    pass->targets = 1;
    pass->grid = (struct program_plane){format_shift_x(out, c), format_shift_y(out, c), out->depth};
    pass->source_grid[0] = pass->grid;
    pass->load_depth = out->depth;
}

// Append the passes that put a plane into outputs: into all that a pass holds by the pass that
// makes it, into the rest from memory.
static void make_component(struct builder *builder, int plane)
{
    struct operand target[FORMAT_COMPONENTS + 1];
    int targets = find_targets(builder, plane, target, FORMAT_COMPONENTS + 1);
    if (plane >= FORMAT_COMPONENTS && (builder->uses[plane] > 1 || targets > FORMAT_COMPONENTS))
        materialised(builder, plane);
    while (!builder->status &&
           (targets = find_targets(builder, plane, target, FORMAT_COMPONENTS)) > 0)
        make_targets(builder, plane, target, targets);
}

static void find_origins(struct builder *builder, int n)
{
    for (int p = 0; p < program_format(builder->program, n)->planes; p++) {
        struct plan_plane *plane = &builder->plan->picture[n].plane[p];
        if (is_reference(builder->program, n, p, &plane->source))
            plane->origin = PLANE_REFERENCE;
        else if (is_constant(builder->program, n, p))
            plane->origin = PLANE_CONSTANT;
    }
}

static void make_output(struct builder *builder, int n)
{
    const struct format *out = program_format(builder->program, n);
    for (int c = 0; c < FORMAT_COMPONENTS && !builder->status; c++) {
        bool has = format_has(out, c);
        const struct program_output *from = &program_out(builder->program, n)[c];
        if (!format_stores(out, c) || builder->done[n * FORMAT_COMPONENTS + c] ||
            builder->plan->picture[n].plane[out->component[c].plane].origin != PLANE_COMPUTED)
            continue;
        if (has && from->plane >= 0)
            make_component(builder, from->plane);
        else
            make_constant(builder, n, c, has ? from->value : (1 << out->depth) - 1);
    }
}

static void make_outputs(struct builder *builder)
{
    for (int n = 0; n < program_pictures(builder->program); n++)
        find_origins(builder, n);
    for (int n = 0; n < program_pictures(builder->program) && !builder->status; n++)
        make_output(builder, n);
}

static bool is_output(const struct program *program, int plane)
{
    for (int n = 0; n < program_pictures(program); n++)
        for (int c = 0; c < FORMAT_COMPONENTS; c++)
            if (format_has(program_format(program, n), c) &&
                program_out(program, n)[c].plane == plane)
                return true;
    return false;
}

static void count_uses(struct builder *builder)
{
    const struct program *program = builder->program;
    for (int k = 0; k < program->ops; k++)
        for (int s = 0; s < program->op[k].sources; s++)
            builder->uses[program->op[k].source[s]]++;
    for (int plane = 0; plane < program->planes; plane++)
        builder->uses[plane] += is_output(program, plane);
}

// ---- the plan ----

static void note_reads(struct plan *plan)
{
    for (int k = 0; k < plan->passes; k++)
        for (int s = 0; s < plan->pass[k].sources; s++)
            if (plan->pass[k].source[s].place == PLACE_INPUT)
                plan->reads |=
                    1u << plan->program->input.component[plan->pass[k].source[s].index].plane;
}

enum status plan_create(const struct program *program, struct plan_limits limits,
                        struct plan **plan)
{
    assert(!program->status && program->output.planes > 0);
    *plan = calloc(1, sizeof **plan);
    if (!*plan)
        return STATUS_MEMORY;
    (*plan)->program = program;
    (*plan)->limits = limits;
    struct builder builder = {.plan = *plan, .program = program, .limits = limits};
    builder.uses = plan_alloc(&builder, (size_t)program->planes * sizeof(int));
    builder.place = plan_alloc(&builder, (size_t)program->planes * sizeof *builder.place);
    builder.placed = plan_alloc(&builder, (size_t)program->planes * sizeof(bool));
    builder.analysed = plan_alloc(&builder, (size_t)program->analyses * sizeof(bool));
    if (!builder.status) {
        count_uses(&builder);
        make_outputs(&builder);
        for (int k = 0; k < program->analyses && !builder.status; k++)
            make_analysis(&builder, k);
    }
    if (!builder.status) {
        plan_find_joined(*plan);
        plan_join_passes(*plan);
        builder.status = plan_share_buffers(*plan);
    }
    if (builder.status)
        plan_destroy(plan);
    else
        note_reads(*plan);
    return builder.status;
}

void plan_destroy(struct plan **plan)
{
    if (!*plan)
        return;
    while ((*plan)->blocks) {
        struct plan_block *block = (*plan)->blocks;
        (*plan)->blocks = block->next;
        free(block);
    }
    free((*plan)->pass);
    free((*plan)->buffer);
    free(*plan);
    *plan = NULL;
}

// ---- operands ----

const struct component *plan_component(const struct plan *plan, struct operand operand)
{
    if (operand.place != PLACE_INPUT && operand.place != PLACE_OUTPUT)
        return NULL;
    int n = operand.index / FORMAT_COMPONENTS;
    bool input = operand.place == PLACE_INPUT;
    const struct format *format = input ? &plan->program->input : program_format(plan->program, n);
    const struct component *at = &format->component[operand.index % FORMAT_COMPONENTS];
    return operand.joined ? &plan->joined[input ? 0 : 1 + n][at->plane] : at;
}

bool plan_is_plain(const struct plan *plan, struct operand operand, int depth)
{
    assert(operand.place != PLACE_BUFFER || (operand.index >= 0 && operand.index < plan->buffers));
    const struct component *at = plan_component(plan, operand);
    if (operand.place == PLACE_BUFFER)
        return (plan->buffer[operand.index].grid.depth > 8) == (depth > 8);
    return at && component_is_plain(at, depth);
}
