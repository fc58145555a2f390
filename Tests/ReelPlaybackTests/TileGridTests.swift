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
    TileGrid(
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
    #expect(grid(size(10, 10), 10, 10)?.tile == size(1, 1))
  }
}
