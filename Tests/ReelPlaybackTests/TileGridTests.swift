import ReelCore
import ReelManifest
import Testing

@testable import ReelPlayback

@Suite("The places of tiles in an image") struct TileGridTests {
  private func size(_ width: Int, _ height: Int) -> PixelSize {
    PixelSize(width: width, height: height)
  }

  private func grid(
    _ image: PixelSize, _ columns: Int, _ rows: Int, stated: PixelSize? = nil, expected: PixelSize? = nil,
    needed: Int? = nil
  ) -> TileGrid? {
    try? TileGrid(
      image, ImageTiles(columns: columns, rows: rows, size: stated), expected: expected ?? stated,
      neededCount: needed ?? columns * rows)
  }

  private func origin(_ grid: TileGrid?, _ index: Int) -> [Int]? {
    grid?.origin(of: index).map { [$0.x, $0.y] }
  }

  @Test("Row by row")
  func rows() throws {
    let grid = grid(size(320, 180), 4, 2)
    #expect(grid?.tile == size(80, 90))
    #expect(origin(grid, 0) == [0, 0] && origin(grid, 3) == [240, 0] && origin(grid, 5) == [80, 90])
    #expect(origin(grid, 8) == nil && origin(grid, -1) == nil)
  }

  @Test("The layout decides where the size is another than stated")
  func otherSize() {
    #expect(grid(size(160, 90), 2, 2, stated: size(160, 90))?.tile == size(80, 45))
    #expect(grid(size(1280, 720), 2, 2, stated: size(160, 90), needed: 3)?.tile == size(640, 360))
    // As few as are needed do not fit either.
    #expect(grid(size(160, 90), 2, 2, stated: size(160, 90), needed: 2)?.tile == size(80, 45))
  }

  @Test("Padding is left out, and other remainders are spread")
  func remainders() {
    let padded = grid(size(808, 450), 10, 5, stated: size(80, 90))
    #expect(padded?.tile == size(80, 90) && origin(padded, 9) == [720, 0])
    let scaled = grid(size(809, 450), 10, 5)
    #expect(scaled?.tile == size(80, 90) && origin(scaled, 9) == [728, 0])
  }

  @Test("The last image may lack what it does not need")
  func cut() {
    let lines = grid(size(320, 90), 4, 4, stated: size(80, 45), needed: 6)
    #expect(lines?.tile == size(80, 45) && origin(lines, 5) == [80, 45] && origin(lines, 8) == nil)
    let one = grid(size(80, 45), 4, 4, expected: size(80, 45), needed: 1)
    #expect(one?.tile == size(80, 45) && origin(one, 1) == nil)
    let columns = grid(size(160, 90), 4, 4, expected: size(80, 45), needed: 4)
    #expect(origin(columns, 2) == [0, 45])
  }

  @Test("Fewer pixels than tiles")
  func tooSmall() {
    #expect(grid(size(9, 100), 10, 10) == nil && grid(size(100, 9), 10, 10) == nil)
    // Nor do tiles of a few pixels make sense.
    #expect(grid(size(79, 80), 10, 10) == nil && grid(size(80, 79), 10, 10) == nil)
    #expect(grid(size(80, 80), 10, 10)?.tile == size(8, 8))
  }

  @Test("A layout that does not fit the size of the tiles")
  func otherShape() throws {
    let stated = size(160, 90)
    // The layout of another image: too many rows, columns in place of rows, one tile.
    #expect(grid(size(640, 270), 4, 4, stated: stated) == nil)
    #expect(grid(size(800, 360), 4, 5, stated: stated) == nil)
    #expect(grid(size(160, 90), 5, 2, stated: stated) == nil)
    let error = #expect(throws: ReelError.self) {
      _ = try TileGrid(
        size(320, 180), ImageTiles(columns: 1, rows: 2, size: stated), expected: stated, neededCount: 2)
    }
    #expect(error?.kind == .badMedia)
    #expect(error?.reason == "an image of 320x180 does not hold 1x2 tiles of about 160x90 pixels")
    // Without the bars of the size that is stated, and with the rounding of small tiles.
    #expect(grid(size(640, 268), 4, 4, stated: stated)?.tile == size(160, 67))
    #expect(grid(size(100, 110), 10, 10, stated: size(10, 12))?.tile == size(10, 11))
    // An MPD that states the size of a tile in place of the image's.
    #expect(grid(size(1600, 450), 10, 5, stated: size(16, 18))?.tile == stated)
  }

  @Test("The last image of a scaled sheet may lack rows")
  func cutAfterScaling() {
    let last = grid(size(809, 180), 10, 5, expected: size(80, 90), needed: 15)
    #expect(last?.tile == size(80, 90) && origin(last, 19) == [728, 90] && origin(last, 20) == nil)
  }
}
