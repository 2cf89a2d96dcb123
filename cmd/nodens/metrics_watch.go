package main

// ownWatchMetrics are about those who watch the queries.
func ownWatchMetrics() []metric {
	return []metric{
		{
			"nodens_query_log_lines_total", "Queries written to the log.", nil,
			func(s *snapshot, e emitter) { e.count(s.Logged) },
		},
		{
			"nodens_query_log_dropped_total", "Queries of the sample that were not, because there were too many.", nil,
			func(s *snapshot, e emitter) { e.count(s.Unlogged) },
		},
		{
			"nodens_dnstap_sent_total", "Queries that the dnstap collector was told of.", nil,
			func(s *snapshot, e emitter) { e.count(s.Dnstap.Sent) },
		},
		{
			"nodens_dnstap_dropped_total", "Queries that it was not told of, because too many were waiting.", nil,
			func(s *snapshot, e emitter) { e.count(s.Dnstap.Dropped) },
		},
	}
}
