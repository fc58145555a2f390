import Foundation
import ReelCore
import ReelFFmpeg

/// A font for texts in images: ASCII, in cells of 6 by 10 pixels.
///
/// All other characters are drawn as a box.
enum BitmapFont {
  static let cell = PixelSize(width: 6, height: 10)

  /// Draws a line of text whose upper left corner is at (`x`, `y`). What lies outside the image is left out.
  ///
  /// - Parameters:
  ///   - scale: The size of a pixel of the font, in pixels of the image.
  ///   - gray: The brightness of the text.
  static func draw(
    _ text: String, x: Int, y: Int, scale: Int = 1, gray: UInt8 = 235, size: PixelSize,
    into pixels: inout [UInt8]
  ) {
    for (number, character) in text.enumerated() {
      let left = x + number * cell.width * scale
      for (row, bits) in glyph(of: character).enumerated() {
        for column in 0..<5 where bits >> (4 - column) & 1 == 1 {
          for vertical in 0..<scale {
            for horizontal in 0..<scale {
              let (px, py) = (left + column * scale + horizontal, y + row * scale + vertical)
              guard px >= 0, px < size.width, py >= 0, py < size.height else { continue }
              let place = (py * size.width + px) * 3
              pixels[place] = gray
              pixels[place + 1] = gray
              pixels[place + 2] = gray
            }
          }
        }
      }
    }
  }

  /// The text with its letters in the Latin alphabet and without accents, as far as Unicode's transforms know them:
  /// `Привет` becomes `Privet`. A run of other characters, such as emoji, becomes one box.
  static func writable(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text }
    let latin = (text.applyingTransform(.toLatin, reverse: false) ?? text)
      .folding(
        options: [.diacriticInsensitive, .widthInsensitive], locale: Locale(identifier: "en_US_POSIX"))
    var writable = ""
    for character in latin {
      if character.isASCII {
        writable.append(character)
      } else if let plain = punctuation[character] {
        writable += plain
      } else if writable.last != box {
        writable.append(box)
      }
    }
    return writable
  }

  /// Drawn for characters that the font lacks.
  private static let box: Character = "\u{25a1}"

  private static let punctuation: [Character: String] = [
    "\u{2013}": "-", "\u{2014}": "-", "\u{2018}": "'", "\u{2019}": "'", "\u{201c}": "\"", "\u{201d}": "\"",
    "\u{2026}": "...", "\u{b7}": "-", "\u{ab}": "\"", "\u{bb}": "\"", "\u{df}": "ss", "\u{e6}": "ae",
    "\u{f8}": "o", "\u{142}": "l",
  ]

  /// The lines of a text, with at most `columns` characters each. A text that needs more than `lines` ends with `...`.
  static func wrap(_ text: String, columns: Int, lines: Int) -> [String] {
    var rest = Array(text)
    var wrapped: [String] = []
    while !rest.isEmpty, wrapped.count < lines {
      if rest.count <= columns {
        wrapped.append(String(rest))
        return wrapped
      }
      if wrapped.count + 1 == lines {
        wrapped.append(String(rest.prefix(max(0, columns - 3))) + "...")
        return wrapped
      }
      let space = rest.prefix(columns + 1).lastIndex(of: " ") ?? 0
      let end = space > columns / 2 ? space : columns
      wrapped.append(String(rest[..<end]))
      rest = Array(rest[end...].drop { $0 == " " })
    }
    return wrapped
  }

  /// Nine rows of five bits; the highest of them is the left column.
  static func glyph(of character: Character) -> [UInt8] {
    guard let value = character.asciiValue, (32...126).contains(value) else { return replacement }
    return glyphs[Int(value) - 32]
  }

  /// A box, for characters that the font lacks.
  static let replacement: [UInt8] = [31, 17, 17, 17, 17, 17, 31, 0, 0]

  /// From space to tilde. The first seven rows stand on the line, the last two below it.
  private static let glyphs: [[UInt8]] = [
    [0, 0, 0, 0, 0, 0, 0, 0, 0],  // space
    [4, 4, 4, 4, 4, 0, 4, 0, 0],  // !
    [10, 10, 0, 0, 0, 0, 0, 0, 0],  // "
    [10, 10, 31, 10, 31, 10, 10, 0, 0],  // #
    [4, 15, 20, 14, 5, 30, 4, 0, 0],  // $
    [25, 25, 2, 4, 8, 19, 19, 0, 0],  // %
    [12, 18, 18, 12, 19, 18, 13, 0, 0],  // &
    [4, 4, 0, 0, 0, 0, 0, 0, 0],  // '
    [2, 4, 8, 8, 8, 4, 2, 0, 0],  // (
    [8, 4, 2, 2, 2, 4, 8, 0, 0],  // )
    [0, 4, 21, 14, 21, 4, 0, 0, 0],  // *
    [0, 4, 4, 31, 4, 4, 0, 0, 0],  // +
    [0, 0, 0, 0, 0, 6, 6, 2, 4],  // ,
    [0, 0, 0, 14, 0, 0, 0, 0, 0],  // -
    [0, 0, 0, 0, 0, 6, 6, 0, 0],  // .
    [1, 1, 2, 4, 8, 16, 16, 0, 0],  // /
    [14, 17, 19, 21, 25, 17, 14, 0, 0],  // 0
    [4, 12, 20, 4, 4, 4, 31, 0, 0],  // 1
    [14, 17, 1, 6, 8, 16, 31, 0, 0],  // 2
    [30, 1, 1, 14, 1, 1, 30, 0, 0],  // 3
    [2, 6, 10, 18, 31, 2, 2, 0, 0],  // 4
    [31, 16, 30, 1, 1, 17, 14, 0, 0],  // 5
    [6, 8, 16, 30, 17, 17, 14, 0, 0],  // 6
    [31, 1, 2, 2, 4, 4, 4, 0, 0],  // 7
    [14, 17, 17, 14, 17, 17, 14, 0, 0],  // 8
    [14, 17, 17, 15, 1, 2, 12, 0, 0],  // 9
    [0, 6, 6, 0, 6, 6, 0, 0, 0],  // :
    [0, 6, 6, 0, 0, 6, 6, 2, 4],  // ;
    [1, 2, 4, 8, 4, 2, 1, 0, 0],  // <
    [0, 0, 31, 0, 31, 0, 0, 0, 0],  // =
    [16, 8, 4, 2, 4, 8, 16, 0, 0],  // >
    [14, 17, 1, 2, 4, 0, 4, 0, 0],  // ?
    [14, 17, 23, 21, 22, 16, 15, 0, 0],  // @
    [4, 10, 17, 17, 31, 17, 17, 0, 0],  // A
    [30, 17, 17, 30, 17, 17, 30, 0, 0],  // B
    [15, 16, 16, 16, 16, 16, 15, 0, 0],  // C
    [28, 18, 17, 17, 17, 18, 28, 0, 0],  // D
    [31, 16, 16, 30, 16, 16, 31, 0, 0],  // E
    [31, 16, 16, 30, 16, 16, 16, 0, 0],  // F
    [15, 16, 16, 19, 17, 17, 15, 0, 0],  // G
    [17, 17, 17, 31, 17, 17, 17, 0, 0],  // H
    [14, 4, 4, 4, 4, 4, 14, 0, 0],  // I
    [7, 2, 2, 2, 2, 18, 12, 0, 0],  // J
    [17, 18, 20, 24, 20, 18, 17, 0, 0],  // K
    [16, 16, 16, 16, 16, 16, 31, 0, 0],  // L
    [17, 27, 21, 21, 17, 17, 17, 0, 0],  // M
    [17, 25, 25, 21, 19, 19, 17, 0, 0],  // N
    [14, 17, 17, 17, 17, 17, 14, 0, 0],  // O
    [30, 17, 17, 30, 16, 16, 16, 0, 0],  // P
    [14, 17, 17, 17, 21, 18, 13, 0, 0],  // Q
    [30, 17, 17, 30, 20, 18, 17, 0, 0],  // R
    [15, 16, 16, 14, 1, 1, 30, 0, 0],  // S
    [31, 4, 4, 4, 4, 4, 4, 0, 0],  // T
    [17, 17, 17, 17, 17, 17, 14, 0, 0],  // U
    [17, 17, 17, 17, 10, 10, 4, 0, 0],  // V
    [17, 17, 17, 21, 21, 21, 10, 0, 0],  // W
    [17, 10, 10, 4, 10, 10, 17, 0, 0],  // X
    [17, 17, 10, 4, 4, 4, 4, 0, 0],  // Y
    [31, 1, 2, 4, 8, 16, 31, 0, 0],  // Z
    [14, 8, 8, 8, 8, 8, 14, 0, 0],  // [
    [16, 16, 8, 4, 2, 1, 1, 0, 0],  // backslash
    [14, 2, 2, 2, 2, 2, 14, 0, 0],  // ]
    [4, 10, 17, 0, 0, 0, 0, 0, 0],  // ^
    [0, 0, 0, 0, 0, 0, 0, 31, 0],  // _
    [8, 4, 0, 0, 0, 0, 0, 0, 0],  // `
    [0, 0, 14, 1, 15, 17, 15, 0, 0],  // a
    [16, 16, 30, 17, 17, 17, 30, 0, 0],  // b
    [0, 0, 15, 16, 16, 16, 15, 0, 0],  // c
    [1, 1, 15, 17, 17, 17, 15, 0, 0],  // d
    [0, 0, 14, 17, 31, 16, 15, 0, 0],  // e
    [6, 8, 30, 8, 8, 8, 8, 0, 0],  // f
    [0, 0, 15, 17, 17, 17, 15, 1, 14],  // g
    [16, 16, 30, 17, 17, 17, 17, 0, 0],  // h
    [4, 0, 12, 4, 4, 4, 14, 0, 0],  // i
    [2, 0, 6, 2, 2, 2, 2, 2, 12],  // j
    [16, 16, 18, 20, 24, 20, 18, 0, 0],  // k
    [12, 4, 4, 4, 4, 4, 14, 0, 0],  // l
    [0, 0, 26, 21, 21, 21, 21, 0, 0],  // m
    [0, 0, 30, 17, 17, 17, 17, 0, 0],  // n
    [0, 0, 14, 17, 17, 17, 14, 0, 0],  // o
    [0, 0, 30, 17, 17, 17, 30, 16, 16],  // p
    [0, 0, 15, 17, 17, 17, 15, 1, 1],  // q
    [0, 0, 22, 24, 16, 16, 16, 0, 0],  // r
    [0, 0, 15, 16, 14, 1, 30, 0, 0],  // s
    [8, 8, 30, 8, 8, 8, 6, 0, 0],  // t
    [0, 0, 17, 17, 17, 17, 15, 0, 0],  // u
    [0, 0, 17, 17, 17, 10, 4, 0, 0],  // v
    [0, 0, 17, 17, 21, 21, 10, 0, 0],  // w
    [0, 0, 17, 10, 4, 10, 17, 0, 0],  // x
    [0, 0, 17, 17, 17, 17, 15, 1, 14],  // y
    [0, 0, 31, 2, 4, 8, 31, 0, 0],  // z
    [3, 4, 4, 8, 4, 4, 3, 0, 0],  // {
    [4, 4, 4, 4, 4, 4, 4, 0, 0],  // |
    [24, 4, 4, 2, 4, 4, 24, 0, 0],  // }
    [0, 0, 8, 21, 2, 0, 0, 0, 0],  // ~
  ]
}
