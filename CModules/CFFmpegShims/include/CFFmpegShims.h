// Declarations that Swift can't import from FFmpeg: macros that compute, variadic calls, and fields that were added,
// moved or removed between FFmpeg 5.1 and 8. Nothing else belongs here.
#ifndef REEL_CFFMPEG_SHIMS_H
#define REEL_CFFMPEG_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

// FFmpeg's declarations come from the module that owns them. If they were included here as text, they would belong to
// this module too, and Swift would find them in both.
#include "../../CFFmpeg/CFFmpeg.h"
#include "CMemory.h"

// AVERROR() and FFERRTAG() are expressions that the importer does not evaluate.
static inline int reel_averror(int posix_code) { return AVERROR(posix_code); }
static inline int reel_averror_eof(void) { return AVERROR_EOF; }
static inline int reel_averror_again(void) { return AVERROR(EAGAIN); }
static inline int reel_averror_exit(void) { return AVERROR_EXIT; }
static inline int reel_averror_io(void) { return AVERROR(EIO); }
static inline int reel_averror_invaliddata(void) { return AVERROR_INVALIDDATA; }

// AV_NOPTS_VALUE is a cast of an unsigned literal.
static inline int64_t reel_nopts(void) { return AV_NOPTS_VALUE; }

/// Receives one formatted log line. `token` is the number given to reel_format_set_token or
/// reel_codec_prepare, or 0 if the line belongs to neither; `frame` is the tag of the packet that was being
/// decoded, or -1. `text` is valid only during the call. May be called on any thread.
typedef void (*reel_log_sink)(uintptr_t token, int64_t frame, int level, const char *text);

/// Sends every line at `level` or more severe to `sink`. The callback of libavutil takes a va_list, which
/// Swift can't receive. Call it once in a process.
void reel_log_install(reel_log_sink sink, int level);

/// Associates the log lines of a context with a number of the caller, which the context carries in its
/// `opaque`.
static inline void reel_format_set_token(AVFormatContext *context, uintptr_t token) { context->opaque = (void *)token; }

/// The data of a decoder: the number for its log lines, and the memory of its frames. Contexts carry it in their
/// `opaque`, which FFmpeg copies to the contexts of its worker threads.
typedef struct reel_codec reel_codec;

/// Call it before the context is opened. The decoder's frames will be mappings of their own, counted on the account of
/// the calling thread. NULL if there is no memory.
reel_codec *reel_codec_prepare(AVCodecContext *context, uintptr_t token);

/// Replaces the codec configuration of a decoder that is not open yet. Returns false if memory runs out.
bool reel_codec_set_extradata(AVCodecContext *context, const uint8_t *data, int size);

/// Call it once the context has been freed. Frames that are still held remain valid.
void reel_codec_release(reel_codec *codec);

/// Returns a copy of a frame without the padding that decoders need between and after its rows, in its own
/// mapping, counted on `account` (which may be NULL). Returns NULL if there is no memory, if the copy would
/// be no smaller, or if the frame is not stored plane by plane.
AVFrame *reel_frame_compact(const AVFrame *frame, reel_account *account);

/// The number of a decoder's log lines.
uintptr_t reel_codec_token(const AVCodecContext *context);

/// Makes every attempt of a demuxer to open another URL fail with EACCES: the importer can't express the type
/// of the function pointer `io_open`.
void reel_format_refuse_io_open(AVFormatContext *context);

/// Numbers the next packet, to identify its frame and its log lines. `reordered_opaque` did this up to FFmpeg
/// 6; from 7 on, the packet's `opaque` does, with AV_CODEC_FLAG_COPY_OPAQUE.
void reel_codec_enable_frame_tags(AVCodecContext *context);
void reel_codec_tag_packet(AVCodecContext *context, AVPacket *packet, int64_t tag);
int64_t reel_frame_tag(const AVFrame *frame);

/// True for a frame that can be decoded on its own. `key_frame` became a flag in FFmpeg 6.1.
bool reel_frame_is_key(const AVFrame *frame);

/// Duration in the stream's time base, or 0. `pkt_duration` became `duration` in FFmpeg 6.
int64_t reel_frame_duration(const AVFrame *frame);

/// Sets the times of a frame, in the stream's time base. `pkt_duration` became `duration` in FFmpeg 6.
void reel_frame_set_times(AVFrame *frame, int64_t pts, int64_t dts, int64_t duration);

/// True for a frame of two fields. `interlaced_frame` became a flag in FFmpeg 6.1.
bool reel_frame_is_interlaced(const AVFrame *frame);

/// The 3x3 display matrix of a stream, or NULL. Side data of streams moved to `codecpar` in FFmpeg 6.1.
const int32_t *reel_stream_display_matrix(const AVStream *stream);

/// The Dolby Vision profile of a stream (its `dvcC` or `dvvC` box), or -1.
int reel_stream_dolby_vision_profile(const AVStream *stream);

/// The luminance in cd/m2 of the brightest pixel of the content as its light level information states it (MaxCLL,
/// CTA-861.3), or else of the mastering display (SMPTE ST 2086); 0 if the frame states neither.
double reel_frame_peak_luminance(const AVFrame *frame);

/// Converts all rows of a frame into the pixels of another one. Returns the number of rows, or a negative
/// code. The arrays of planes are tuples in Swift.
int reel_scale(struct SwsContext *context, const AVFrame *source, AVFrame *target);

/// True if a packet's samples are encrypted (ISO/IEC 23001-7).
bool reel_packet_is_encrypted(const AVPacket *packet);

/// Copies a packet's bytes, which must have no other reference, to the account of the calling thread, if it
/// has one. They are stored there without gaps. If that fails, the packet stays unchanged.
void reel_packet_store(AVPacket *packet);

/// Converts the samples of a decoded frame into `output`, which has room for `capacity` samples of every
/// channel. Returns the number of samples per channel, or a negative code. The types of swr_convert's
/// arguments changed in FFmpeg 7.
int reel_resample_frame(SwrContext *context, uint8_t *output, int capacity, const AVFrame *frame);

/// Like reel_resample_frame, from interleaved samples; `input` NULL returns the samples held back.
int reel_resample_interleaved(SwrContext *context, uint8_t *output, int capacity, const uint8_t *input, int count);

/// The channels of a native layout, as AV_CH_ bits; 0 for another or unknown order of channels. The mask is a member of
/// an unnamed union.
uint64_t reel_channel_mask(const AVChannelLayout *layout);

#endif
