#include "CFFmpegShims.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <libavutil/dovi_meta.h>
#include <libavutil/log.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/opt.h>
#include <libavutil/version.h>

#include "CMemory.h"

static reel_log_sink installed_sink;
static int installed_level;

static void log_callback(void *context, int level, const char *format, va_list arguments)
{
    // Only one line at debug level reports lost frames.
    if ((level & 0xff) > installed_level && strncmp(format, "Frame num gap", 13))
        return;

    uintptr_t token = 0;
    int64_t frame = -1;
    // Contexts are identified by the name of their class: demuxers log through their AVFormatContext,
    // decoders (and the copies of their context that frame threads use) through their AVCodecContext.
    const AVClass *class = context ? *(const AVClass **)context : NULL;
    // Helpers (libavutil's checks of frame sizes) log through a class of their own that names its parent.
    for (int depth = 0; class && class->parent_log_context_offset && depth < 4; depth++) {
        void *parent = *(void **)((uint8_t *)context + class->parent_log_context_offset);
        if (!parent)
            break;
        context = parent;
        class = *(const AVClass **)context;
    }
    if (class && class->class_name) {
        if (!strcmp(class->class_name, "AVFormatContext")) {
            token = (uintptr_t)((const AVFormatContext *)context)->opaque;
        } else if (!strcmp(class->class_name, "AVCodecContext")) {
            token = reel_codec_token(context);
#if LIBAVCODEC_VERSION_MAJOR < 61
            frame = ((const AVCodecContext *)context)->reordered_opaque;
#endif
        }
    }

    char text[1024];
    // Formats by itself instead of av_log_format_line: no class prefix and no state kept between lines.
    int length = vsnprintf(text, sizeof text, format, arguments);
    if (length <= 0)
        return;
    if ((size_t)length >= sizeof text)
        length = sizeof text - 1;
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    if (length > 0)
        installed_sink(token, frame, level & 0xff, text);
}

void reel_log_install(reel_log_sink sink, int level)
{
    installed_sink = sink;
    installed_level = level;
    av_log_set_callback(log_callback);
}

static int refuse_io_open(AVFormatContext *context, AVIOContext **io, const char *url, int flags,
                          AVDictionary **options)
{
    (void)io, (void)flags, (void)options;
    av_log(context, AV_LOG_ERROR, "refused to open '%s' from within a media file\n", url);
    return AVERROR(EACCES);
}

void reel_format_refuse_io_open(AVFormatContext *context)
{
    context->io_open = refuse_io_open;
}

bool reel_codec_set_extradata(AVCodecContext *context, const uint8_t *data, int size)
{
    // libavcodec frees the buffer and requires padding.
    uint8_t *copy = av_mallocz((size_t)size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (!copy)
        return false;
    memcpy(copy, data, (size_t)size);
    av_freep(&context->extradata);
    context->extradata = copy;
    context->extradata_size = size;
    return true;
}

void reel_codec_enable_frame_tags(AVCodecContext *context)
{
#if LIBAVCODEC_VERSION_MAJOR >= 61
    context->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#else
    context->reordered_opaque = -1;
#endif
}

void reel_codec_tag_packet(AVCodecContext *context, AVPacket *packet, int64_t tag)
{
#if LIBAVCODEC_VERSION_MAJOR >= 61
    (void)context;
    packet->opaque = (void *)(intptr_t)tag;
#else
    (void)packet;
    context->reordered_opaque = tag;
#endif
}

int64_t reel_frame_tag(const AVFrame *frame)
{
#if LIBAVCODEC_VERSION_MAJOR >= 61
    return (int64_t)(intptr_t)frame->opaque;
#else
    return frame->reordered_opaque;
#endif
}

bool reel_frame_is_key(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
    return frame->flags & AV_FRAME_FLAG_KEY;
#else
    return frame->key_frame;
#endif
}

int64_t reel_frame_duration(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_MAJOR >= 58
    return frame->duration;
#else
    return frame->pkt_duration;
#endif
}

void reel_frame_set_times(AVFrame *frame, int64_t pts, int64_t dts, int64_t duration)
{
    frame->pts = pts;
    frame->pkt_dts = dts;
    frame->best_effort_timestamp = pts;
#if LIBAVUTIL_VERSION_MAJOR >= 58
    frame->duration = duration;
#else
    frame->pkt_duration = duration;
#endif
}

bool reel_frame_is_interlaced(const AVFrame *frame)
{
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 29, 100)
    return frame->flags & AV_FRAME_FLAG_INTERLACED;
#else
    return frame->interlaced_frame;
#endif
}

const int32_t *reel_stream_display_matrix(const AVStream *stream)
{
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    const AVPacketSideData *data = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    return data && data->size >= 9 * sizeof(int32_t) ? (const int32_t *)data->data : NULL;
#else
    size_t size = 0;
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    return data && size >= 9 * sizeof(int32_t) ? (const int32_t *)data : NULL;
#endif
}

int reel_stream_dolby_vision_profile(const AVStream *stream)
{
    const AVDOVIDecoderConfigurationRecord *record = NULL;
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    const AVPacketSideData *data = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DOVI_CONF);
    if (data && data->size >= sizeof(*record))
        record = (const AVDOVIDecoderConfigurationRecord *)data->data;
#else
    size_t size = 0;
    const uint8_t *data = av_stream_get_side_data(stream, AV_PKT_DATA_DOVI_CONF, &size);
    if (data && size >= sizeof(*record))
        record = (const AVDOVIDecoderConfigurationRecord *)data;
#endif
    return record ? record->dv_profile : -1;
}

double reel_frame_peak_luminance(const AVFrame *frame)
{
    const AVFrameSideData *data = av_frame_get_side_data(frame, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL);
    if (data) {
        const AVContentLightMetadata *light = (const AVContentLightMetadata *)data->data;
        if (light->MaxCLL > 0)
            return light->MaxCLL;
    }
    data = av_frame_get_side_data(frame, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
    if (data) {
        const AVMasteringDisplayMetadata *mastering = (const AVMasteringDisplayMetadata *)data->data;
        if (mastering->has_luminance && mastering->max_luminance.den > 0)
            return av_q2d(mastering->max_luminance);
    }
    return 0;
}

int reel_scale(struct SwsContext *context, const AVFrame *source, AVFrame *target)
{
    return sws_scale(context, (const uint8_t *const *)source->data, source->linesize, 0, source->height, target->data,
                     target->linesize);
}

bool reel_packet_is_encrypted(const AVPacket *packet)
{
    return av_packet_get_side_data(packet, AV_PKT_DATA_ENCRYPTION_INFO, NULL) != NULL;
}

static void stored_bytes_free(void *opaque, uint8_t *data)
{
    (void)data;
    reel_chunk_release(opaque);
}

void reel_packet_store(AVPacket *packet)
{
    reel_account *account = reel_account_current();
    if (!account || !packet->buf || packet->size <= 0 || av_buffer_get_ref_count(packet->buf) != 1)
        return;
    reel_chunk *chunk;
    size_t size = (size_t)packet->size + AV_INPUT_BUFFER_PADDING_SIZE;
    uint8_t *data = reel_account_store(account, size, &chunk);
    if (!data)
        return;
    AVBufferRef *buffer = av_buffer_create(data, size, stored_bytes_free, chunk, 0);
    if (!buffer) {
        reel_chunk_release(chunk);
        return;
    }
    memcpy(data, packet->data, (size_t)packet->size);
    av_buffer_unref(&packet->buf);
    packet->buf = buffer;
    packet->data = data;
}

int reel_resample_frame(SwrContext *context, uint8_t *output, int capacity, const AVFrame *frame)
{
    return swr_convert(context, &output, capacity, (const uint8_t **)frame->extended_data, frame->nb_samples);
}

int reel_resample_interleaved(SwrContext *context, uint8_t *output, int capacity, const uint8_t *input, int count)
{
    return swr_convert(context, &output, capacity, input ? &input : NULL, count);
}

uint64_t reel_channel_mask(const AVChannelLayout *layout)
{
    return layout->order == AV_CHANNEL_ORDER_NATIVE ? layout->u.mask : 0;
}
