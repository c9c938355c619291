package apiproxy

import "net/http"

// sealed sets the headers that keep a browser from treating an answer as anything but data: no
// page, no script or image in another origin's page, no copy on disk. It sets them when the answer
// begins, whichever handler writes it.
func sealed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&seal{ResponseWriter: w}, r) })
}

type seal struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter. Informational answers (1xx) of the API server's
// connection stay here.
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

// Write implements http.ResponseWriter.
func (s *seal) Write(b []byte) (int, error) {
	s.begin()
	return s.ResponseWriter.Write(b)
}

// FlushError implements the interface of http.ResponseController.
func (s *seal) FlushError() error {
	s.begin()
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// Unwrap implements the interface of http.ResponseController.
func (s *seal) Unwrap() http.ResponseWriter { return s.ResponseWriter }
