package restapi

// Patterns are the requests that are served.
func (s *Server) Patterns() []string { return s.patterns }
