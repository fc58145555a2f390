import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Geometry of frames")
struct FrameGeometryTests {
  private let wide = PixelSize(width: 1920, height: 1080)
  private let turned = Orientation(rotation: 90, isMirrored: false)

  private func geometry(
    _ stored: PixelSize, _ aspect: Rational? = nil, _ orientation: Orientation = .upright,
    target: PixelSize? = nil, _ gravity: VideoGravity = .resizeAspect
  ) -> FrameGeometry {
    FrameGeometry(
      stored: stored, sampleAspectRatio: aspect, orientation: orientation, target: target, gravity: gravity)
  }

  @Test("Without a target a frame keeps its size")
  func ownSize() {
    let own = geometry(wide)
    #expect(own.output == wide)
    #expect(own.scaled == wide)
    #expect(own.origin == (0, 0))
  }

  @Test(
    "Samples that are not square widen or narrow the frame",
    arguments: [
      (PixelSize(width: 144, height: 108), Rational(4, 3), PixelSize(width: 192, height: 108)),
      (PixelSize(width: 160, height: 120), Rational(9, 8), PixelSize(width: 180, height: 120)),
      (PixelSize(width: 720, height: 576), Rational(16, 15), PixelSize(width: 768, height: 576)),
      (PixelSize(width: 720, height: 480), Rational(8, 9), PixelSize(width: 640, height: 480)),
      (PixelSize(width: 161, height: 91), Rational(1, 1), PixelSize(width: 161, height: 91)),
    ])
  func sampleAspectRatio(stored: PixelSize, aspect: Rational, expected: PixelSize) {
    #expect(geometry(stored, aspect).output == expected)
    #expect(geometry(stored, aspect).scaled == expected)
    #expect(geometry(stored, aspect, turned).output == expected.transposed)
    // The stored frame is scaled before it is turned.
    #expect(geometry(stored, aspect, turned).scaled == expected)
  }

  @Test(
    "Aspect ratios that make no sense are left out",
    arguments: [Rational(0, 1), Rational(1, 0), Rational(-4, 3), Rational(1, 10000), Rational(100_000, 1)])
  func absurdAspect(aspect: Rational) {
    #expect(geometry(wide, aspect).output == wide)
  }

  @Test("Fit keeps all of the frame, in the middle")
  func fit() {
    let bars = geometry(wide, target: PixelSize(width: 320, height: 320))
    #expect(bars.output == PixelSize(width: 320, height: 320))
    #expect(bars.scaled == PixelSize(width: 320, height: 180))
    #expect(bars.origin == (0, 70))
    let pillars = geometry(wide, target: PixelSize(width: 640, height: 180))
    #expect(pillars.scaled == PixelSize(width: 320, height: 180))
    #expect(pillars.origin == (160, 0))
    let upright = geometry(wide, nil, turned, target: PixelSize(width: 320, height: 320))
    #expect(upright.scaled == PixelSize(width: 320, height: 180))
    #expect(upright.origin == (70, 0))
    let larger = geometry(PixelSize(width: 16, height: 9), target: PixelSize(width: 160, height: 90))
    #expect(larger.scaled == PixelSize(width: 160, height: 90))
    #expect(larger.origin == (0, 0))
  }

  @Test("Fill covers all of the output, and is cut evenly")
  func fill() {
    let square = geometry(wide, target: PixelSize(width: 180, height: 180), .resizeAspectFill)
    #expect(square.output == PixelSize(width: 180, height: 180))
    #expect(square.scaled == PixelSize(width: 320, height: 180))
    #expect(square.origin == (-70, 0))
    let upright = geometry(wide, nil, turned, target: PixelSize(width: 180, height: 180), .resizeAspectFill)
    #expect(upright.scaled == PixelSize(width: 320, height: 180))
    #expect(upright.origin == (0, -70))
  }

  @Test("Stretch takes the output's shape")
  func stretch() {
    let target = PixelSize(width: 100, height: 300)
    #expect(geometry(wide, target: target, .resize).scaled == target)
    #expect(geometry(wide, target: target, .resize).origin == (0, 0))
    #expect(geometry(wide, nil, turned, target: target, .resize).scaled == target.transposed)
    #expect(geometry(wide, nil, turned, target: target, .resize).output == target)
  }

  @Test("Odd sizes lose nothing", arguments: VideoGravity.allCases, [0, 90, 180, 270])
  func oddSizes(gravity: VideoGravity, rotation: Int) {
    for (stored, target) in [
      (PixelSize(width: 161, height: 91), PixelSize(width: 100, height: 100)),
      (PixelSize(width: 1, height: 1), PixelSize(width: 7, height: 3)),
      (PixelSize(width: 16000, height: 1), PixelSize(width: 10, height: 10)),
      (PixelSize(width: 3, height: 4001), PixelSize(width: 1, height: 1)),
    ] {
      let orientation = Orientation(rotation: rotation, isMirrored: false)
      let made = geometry(stored, nil, orientation, target: target, gravity)
      let upright = orientation.swapsAxes ? made.scaled.transposed : made.scaled
      #expect(made.output == target)
      #expect(upright.width >= 1 && upright.height >= 1)
      switch gravity {
      case .resize: #expect(upright == target)
      case .resizeAspect:
        #expect(upright.width <= target.width && upright.height <= target.height)
        #expect(upright.width == target.width || upright.height == target.height)
        #expect(made.origin.x >= 0 && made.origin.y >= 0)
      case .resizeAspectFill:
        #expect(upright.width >= target.width && upright.height >= target.height)
        #expect(made.origin.x <= 0 && made.origin.y <= 0)
        #expect(made.origin.x + upright.width >= target.width)
        #expect(made.origin.y + upright.height >= target.height)
      }
    }
  }
}
