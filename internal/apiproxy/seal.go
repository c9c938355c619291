package apiproxy

import "net/http"

// sealed writes the headers that keep a browser from making anything of an answer but data for who asked: no page, no script
// or picture of another origin's page, no copy on disk. They are set when the answer begins, whoever gives it.
func sealed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&seal{ResponseWriter: w}, r) })
}

type seal struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader begins the answer. Answers before the answer (1xx) stay here: they are of the API server's connection.
func (s *seal) WriteHeader(status int) {
	if status < 200 {
		return
	}
	s.begin()
	s.ResponseWriter.WriteHeader(status)
}

func (s *seal) begin() {
	if s.begun {
		return
	}
	s.begun = true
	h := s.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if h.Get("Content-Security-Policy") == "" { // the login page has its own
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	}
}

// Write passes the answer on.
func (s *seal) Write(b []byte) (int, error) {
	s.begin()
	return s.ResponseWriter.Write(b)
}

// FlushError sends what there is.
func (s *seal) FlushError() error {
	s.begin()
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (s *seal) Unwrap() http.ResponseWriter { return s.ResponseWriter }
