package receive

// ConnectionsNow gives how many connections there are.
func (s *Server) ConnectionsNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
