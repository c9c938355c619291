package apiproxy

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// writeJSON writes an answer with its length, so the client sees its end on a persistent
// connection.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // never with our types
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// fault is an error in the format of the API server and OpenAI.
type fault struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// refuse answers with a fault. An empty code becomes null.
func refuse(w http.ResponseWriter, status int, kind, code, message string) {
	f := fault{Message: message, Type: kind}
	if code != "" {
		f.Code = &code
	}
	writeJSON(w, status, map[string]fault{"error": f})
}

const badRequest = "invalid_request_error"

func noSession(w http.ResponseWriter, id string) {
	refuse(w, http.StatusNotFound, badRequest, "session_not_found", "Session not found: "+id)
}

func noRun(w http.ResponseWriter, id string) {
	refuse(w, http.StatusNotFound, badRequest, "run_not_found", "Run not found: "+id)
}

func noResponse(w http.ResponseWriter, id string) {
	refuse(w, http.StatusNotFound, badRequest, "", "Response not found: "+id)
}

func noJob(w http.ResponseWriter) { jobFault(w, http.StatusNotFound, "Job not found") }

// jobFault answers a request about jobs, for which the API server has a format of its own.
func jobFault(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]string{"error": message})
}

func badJSON(w http.ResponseWriter) {
	refuse(w, http.StatusBadRequest, badRequest, "", "Invalid JSON in request body")
}

func badSessionID(w http.ResponseWriter) {
	refuse(w, http.StatusBadRequest, badRequest, "invalid_session_id", "Invalid session ID")
}
