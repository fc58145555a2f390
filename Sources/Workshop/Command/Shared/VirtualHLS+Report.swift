import ReelGateway

extension VirtualHLS {
  /// Reports omitted parts on standard error.
  func report(quietly: Bool) {
    Console.report(failures)
    if !quietly { for warning in warnings { Console.warn("\(warning)") } }
  }
}
