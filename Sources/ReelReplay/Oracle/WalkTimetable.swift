internal import ReelCore

/// When which item of a walk is the current one. It is fixed by the walk's plan, whatever the pool does.
package struct WalkTimetable: Sendable, Hashable {
  /// In order of time; times are microseconds since the walk began.
  package let stops: [OracleProblem.Stop]
  /// When the walk ends.
  package let end: Int64

  package init(_ plan: WalkPlan) {
    let settling = WalkPlan.settleTime.wholeMicroseconds
    let burstInterval = WalkPlan.burstInterval.wholeMicroseconds
    var stops = [OracleProblem.Stop(time: 0, index: plan.start, settle: 0, isCounted: false)]
    var time: Int64 = 0
    for step in plan.steps {
      time += step.dwell.wholeMicroseconds
      for (number, index) in step.path.enumerated() {
        if number > 0 { time += burstInterval }
        let isLast = number + 1 == step.path.count
        stops.append(OracleProblem.Stop(time: time, index: index, settle: isLast ? time + settling : nil))
      }
      time += settling
    }
    self.stops = stops
    end = time + plan.closingDwell.wholeMicroseconds
  }

  /// When a stop ends.
  package func end(of stop: Int) -> Int64 { stop + 1 < stops.count ? stops[stop + 1].time : end }

  /// The first stop from which on a pool can hold a stop's item until that stop.
  package func firstStop(holding stop: Int, slotCount: Int) -> Int {
    var first = stop
    while first > 0, abs(stops[first - 1].index - stops[stop].index) < slotCount { first -= 1 }
    return first
  }
}
