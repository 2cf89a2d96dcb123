package main

// ownWatchMetrics are about those who watch the queries.
func ownWatchMetrics() []metric {
	return []metric{
		count("nodens_query_log_lines_total", "Queries written to the log.", func(s *snapshot) uint64 { return s.Logged }),
		count("nodens_query_log_dropped_total", "Queries of the sample that were not, because there were too many.", func(s *snapshot) uint64 { return s.Unlogged }),
		count("nodens_dnstap_sent_total", "Queries that the dnstap collector was told of.", func(s *snapshot) uint64 { return s.Dnstap.Sent }),
		count("nodens_dnstap_dropped_total", "Queries that it was not told of, because too many were waiting.", func(s *snapshot) uint64 { return s.Dnstap.Dropped }),
	}
}
