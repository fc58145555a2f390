// The frames of decoders. Those of an account are mappings of their own, so freed memory returns to the
// system, regardless of malloc.
#include "CFFmpegShims.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <libavutil/buffer.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>

#include "CMemory.h"

// The largest of libavcodec's values for STRIDE_ALIGN, and the padding of its own frames after each plane,
// because some code reads past the end.
enum { plane_align = 64, plane_padding = 16 + 64 - 1 };

// The number of frames kept for reuse. A decoder whose frames return one by one needs one or two. Frames that return
// together, after a seek or at the end, are not kept.
enum { spare_capacity = 3 };

// A pool of frames of one size. It is held by its decoder, and by each of its frames in use.
typedef struct pool {
    pthread_mutex_t lock;
    reel_account *account;
    size_t references;
    bool is_closed;
    void *spare[spare_capacity];
    int spare_count;

    enum AVPixelFormat format;
    int width, height;
    int linesize[4];
    size_t offset[4];
    int planes;
    size_t size;
} pool;

struct reel_codec {
    uintptr_t token;
    const AVCodecContext *context;
    reel_account *account;
    // Frame threads request frames in parallel.
    pthread_mutex_t lock;
    pool *pool;
};

static void pool_retain(pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->references++;
    pthread_mutex_unlock(&pool->lock);
}

static void pool_free(pool *pool)
{
    pthread_mutex_destroy(&pool->lock);
    if (pool->account)
        reel_account_release(pool->account);
    free(pool);
}

/// Releases one reference. The last one frees the pool: do not use it after this.
static void pool_release(pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool is_last = --pool->references == 0;
    pthread_mutex_unlock(&pool->lock);
    if (is_last)
        pool_free(pool);
}

static void frame_free(void *opaque, uint8_t *data)
{
    pool *pool = opaque;
    pthread_mutex_lock(&pool->lock);
    bool keeps = !pool->is_closed && pool->spare_count < spare_capacity;
    if (keeps)
        pool->spare[pool->spare_count++] = data;
    pthread_mutex_unlock(&pool->lock);
    if (!keeps)
        reel_frame_memory_free(pool->account, data, pool->size);
    pool_release(pool);
}

/// Returns a frame, which takes over the caller's reference to the pool. Without memory, returns NULL and
/// releases the reference.
static AVBufferRef *pool_get(pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    void *data = pool->spare_count > 0 ? pool->spare[--pool->spare_count] : NULL;
    pthread_mutex_unlock(&pool->lock);
    if (!data)
        data = reel_frame_memory_get(pool->account, pool->size);
    AVBufferRef *buffer = data ? av_buffer_create(data, pool->size, frame_free, pool, 0) : NULL;
    if (buffer)
        return buffer;
    if (data)
        reel_frame_memory_free(pool->account, data, pool->size);
    pool_release(pool);
    return NULL;
}

/// Keeps no spare frames from now on. The pool ends with its last frame.
static void pool_close(pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->is_closed = true;
    for (int i = 0; i < pool->spare_count; i++)
        reel_frame_memory_free(pool->account, pool->spare[i], pool->size);
    pool->spare_count = 0;
    pthread_mutex_unlock(&pool->lock);
    pool_release(pool);
}

/// Arranges planes like libavcodec's own frames (update_frame_pool in libavcodec/get_buffer.c), one after the
/// other.
static int lay_out(AVCodecContext *context, const AVFrame *frame, pool *pool)
{
    int width = frame->width, height = frame->height;
    int align[AV_NUM_DATA_POINTERS];
    avcodec_align_dimensions2(context, &width, &height, align);

    int unaligned;
    do {
        // Align the width, not each plane on its own: some code relies on one stride being a multiple of another.
        int code = av_image_fill_linesizes(pool->linesize, frame->format, width);
        if (code < 0)
            return code;
        width += width & ~(width - 1);
        unaligned = 0;
        for (int i = 0; i < 4; i++)
            unaligned |= pool->linesize[i] % align[i];
    } while (unaligned);

    ptrdiff_t linesize[4];
    size_t size[4];
    for (int i = 0; i < 4; i++)
        linesize[i] = pool->linesize[i];
    int code = av_image_fill_plane_sizes(size, frame->format, height, linesize);
    if (code < 0)
        return code;
    for (int i = 0; i < 4 && size[i]; i++) {
        if (size[i] > INT_MAX - plane_padding)
            return AVERROR(EINVAL);
        pool->offset[i] = (pool->size + plane_align - 1) / plane_align * plane_align;
        pool->size = pool->offset[i] + size[i] + plane_padding;
        pool->planes = i + 1;
    }
    return pool->planes ? 0 : AVERROR(EINVAL);
}

/// Returns the pool for frames like `frame`.
static int pool_for(reel_codec *codec, AVCodecContext *context, const AVFrame *frame, pool **result)
{
    pool *old = codec->pool;
    if (old && old->format == frame->format && old->width == frame->width && old->height == frame->height) {
        *result = old;
        return 0;
    }
    pool *new = calloc(1, sizeof *new);
    if (!new)
        return AVERROR(ENOMEM);
    int code = lay_out(context, frame, new);
    if (code < 0) {
        free(new);
        return code;
    }
    pthread_mutex_init(&new->lock, NULL);
    new->format = frame->format;
    new->width = frame->width;
    new->height = frame->height;
    new->references = 1;
    new->account = codec->account ? reel_account_retain(codec->account) : NULL;
    if (old)
        pool_close(old);
    codec->pool = *result = new;
    return 0;
}

/// True for frames stored plane by plane.
static bool has_planes(const AVFrame *frame)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
    uint64_t others = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM;
    return format && !(format->flags & others);
}

static bool is_ours(const AVCodecContext *context, const AVFrame *frame)
{
    return context->codec_type == AVMEDIA_TYPE_VIDEO && context->codec->capabilities & AV_CODEC_CAP_DR1 &&
           !context->hw_frames_ctx && has_planes(frame);
}

static int get_buffer(AVCodecContext *context, AVFrame *frame, int flags)
{
    reel_codec *codec = context->opaque;
    // A decoder's thread has a copy of the context.
    if (codec->account && context != codec->context)
        reel_account_adopt_thread(codec->account);
    if (!is_ours(context, frame))
        return avcodec_default_get_buffer2(context, frame, flags);

    pool *pool;
    pthread_mutex_lock(&codec->lock);
    int code = pool_for(codec, context, frame, &pool);
    if (code >= 0)
        pool_retain(pool);
    pthread_mutex_unlock(&codec->lock);
    if (code < 0)
        return code;
    // Outside the lock, so that other threads need not wait until new memory is zeroed.
    AVBufferRef *buffer = pool_get(pool);
    if (!buffer)
        return AVERROR(ENOMEM);

    memset(frame->data, 0, sizeof frame->data);
    memset(frame->linesize, 0, sizeof frame->linesize);
    frame->buf[0] = buffer;
    for (int i = 0; i < pool->planes; i++) {
        frame->data[i] = buffer->data + pool->offset[i];
        frame->linesize[i] = pool->linesize[i];
    }
    frame->extended_data = frame->data;
    return 0;
}

reel_codec *reel_codec_prepare(AVCodecContext *context, uintptr_t token)
{
    reel_codec *codec = calloc(1, sizeof *codec);
    if (!codec)
        return NULL;
    codec->token = token;
    codec->context = context;
    reel_account *account = reel_account_current();
    codec->account = account ? reel_account_retain(account) : NULL;
    pthread_mutex_init(&codec->lock, NULL);
    context->opaque = codec;
    context->get_buffer2 = get_buffer;
#if LIBAVCODEC_VERSION_MAJOR < 60
    // Later versions expect it of all frames.
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    context->thread_safe_callbacks = 1;
    _Pragma("GCC diagnostic pop")
#endif
    return codec;
}

void reel_codec_release(reel_codec *codec)
{
    if (codec->pool)
        pool_close(codec->pool);
    if (codec->account)
        reel_account_release(codec->account);
    pthread_mutex_destroy(&codec->lock);
    free(codec);
}

uintptr_t reel_codec_token(const AVCodecContext *context)
{
    const reel_codec *codec = context->opaque;
    return codec ? codec->token : 0;
}

// A copy that is owned only by its frames.
typedef struct copy {
    reel_account *account;
    size_t size;
} copy;

static void copy_free(void *opaque, uint8_t *data)
{
    copy *copy = opaque;
    reel_frame_memory_free(copy->account, data, copy->size);
    if (copy->account)
        reel_account_release(copy->account);
    free(copy);
}

/// Returns NULL if there is no memory.
static AVBufferRef *copy_buffer(size_t size, reel_account *account)
{
    copy *made = calloc(1, sizeof *made);
    void *data = made ? reel_frame_memory_get(account, size) : NULL;
    if (!data) {
        free(made);
        return NULL;
    }
    made->size = size;
    made->account = account ? reel_account_retain(account) : NULL;
    AVBufferRef *buffer = av_buffer_create(data, size, copy_free, made, 0);
    if (!buffer)
        copy_free(made, data);
    return buffer;
}

AVFrame *reel_frame_compact(const AVFrame *frame, reel_account *account)
{
    if (!has_planes(frame) || frame->width <= 0 || frame->height <= 0)
        return NULL;
    int linesize[4];
    if (av_image_fill_linesizes(linesize, frame->format, frame->width) < 0)
        return NULL;
    ptrdiff_t strides[4] = {linesize[0], linesize[1], linesize[2], linesize[3]};
    size_t sizes[4], offsets[4] = {0}, size = 0, held = 0;
    if (av_image_fill_plane_sizes(sizes, frame->format, frame->height, strides) < 0)
        return NULL;
    for (int i = 0; i < 4 && sizes[i]; i++) {
        offsets[i] = (size + plane_align - 1) / plane_align * plane_align;
        size = offsets[i] + sizes[i];
    }
    // Some code reads past the end of a row.
    size += plane_padding;
    for (int i = 0; i < AV_NUM_DATA_POINTERS && frame->buf[i]; i++)
        held += frame->buf[i]->size;
    if (size >= held)
        return NULL;

    AVFrame *made = av_frame_alloc();
    AVBufferRef *buffer = made ? copy_buffer(size, account) : NULL;
    if (!buffer || av_frame_copy_props(made, frame) < 0) {
        av_buffer_unref(&buffer);
        av_frame_free(&made);
        return NULL;
    }
    made->buf[0] = buffer;
    made->format = frame->format;
    made->width = frame->width;
    made->height = frame->height;
    for (int i = 0; i < 4 && sizes[i]; i++) {
        made->data[i] = buffer->data + offsets[i];
        made->linesize[i] = linesize[i];
    }
    const uint8_t *planes[4] = {frame->data[0], frame->data[1], frame->data[2], frame->data[3]};
    av_image_copy(made->data, made->linesize, planes, frame->linesize, frame->format, frame->width, frame->height);
    return made;
}
