package traps

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trap is something that has gone wrong with a gateway or an app somewhere, and what is right then. Each of its proofs is a
// test, as package.Test; a scenario of test/e2e, where the first letter is small; or a file of testdata that a test plays.
type trap struct {
	name   string
	right  string
	proofs []string
}

const (
	recorded = "internal/agent/relay/testdata/"
	relay    = "internal/agent/relay."
	hub      = "internal/hub."
	e2eTest  = "test/e2e."
	here     = "test/traps."
	client   = "gateway."
	direct   = "internal/agent/direct."
)

// traps is the list, in four parts: how a gateway stalls (doc/hermes/relay.md §7), how it goes and
// comes (§10), what failing answers do to it (§11), and what has gone wrong in other programs of
// this kind.
var traps = []trap{
	// §7, the table: what makes a gateway deaf for 30 s while a turn runs in that chat.
	{"wedge: /approve or /deny in words, older", "sent, for there is no other way; what comes out meanwhile is shown, everything else waits",
		[]string{relay + "TestWedgeTable", relay + "TestOlderFilesAndAdmission", recorded + "0.19.0/07-exec-approve-by-text-wedge.want", e2eTest + "TestDenyByText"}},
	{"wedge: /approve or /deny in words, newer", "waits for the end of the turn; a card is answered by its own event",
		[]string{relay + "TestWedgeTable", here + "TestAnswerInWords", recorded + "0.22.2/07-exec-approve-by-text-wedge.want"}},
	{"wedge: a command with a reply, both versions", "waits for the end of the turn",
		[]string{relay + "TestWedgeTable", here + "TestThreeWriteDuringATurn", recorded + "0.22.2/30-busy-queue-ack-off.want", e2eTest + "busy", e2eTest + "TestDefaultSettings"}},
	{"wedge: /stop in words, older", "becomes an interrupt", []string{relay + "TestWedgeTable", recorded + "0.19.0/16-stop-text.want", e2eTest + "stopWord"}},
	{"wedge: /stop in words, newer", "becomes an interrupt",
		[]string{relay + "TestWedgeTable", here + "TestStopDuringTurn", recorded + "0.22.2/16-stop-text.want", e2eTest + "stopWord"}},
	{"wedge: a plain message with the default settings, older", "waits, unless the gateway asked something in words",
		[]string{relay + "TestWedgeTable", recorded + "0.19.0/08-message-while-busy-wedge.want", e2eTest + "TestDefaultSettings"}},
	{"wedge: a plain message with the default settings, newer", "waits: whether the settings are the default cannot be seen",
		[]string{relay + "TestWedgeTable", recorded + "0.22.2/08-message-while-busy-wedge.want", e2eTest + "TestDefaultSettings"}},
	{"wedge: a plain message without busy ack, both versions", "each message has its own turn and its own reply",
		[]string{relay + "TestWedgeTable", recorded + "0.19.0/30-busy-queue-ack-off.want", recorded + "0.22.2/30-busy-queue-ack-off.want", recorded + "0.22.2/31-busy-interrupt-ack-off.want"}},
	{"wedge: the answer to an open question, older", "passes at once",
		[]string{relay + "TestWedgeTable", relay + "TestOlderAsksAtOnce", recorded + "0.19.0/13-clarify-typed-without-press.want", e2eTest + "clarifyInWords"}},
	{"wedge: the answer to an open question, newer", "passes once it is clear that a question is open", []string{relay + "TestWedgeTable", relay + "TestNewerQuestion", e2eTest + "clarify"}},
	{"wedge: a prompt response", "passes at once", []string{relay + "TestWedgeTable", relay + "TestCards", recorded + "0.22.2/04-exec-approve-once.want", e2eTest + "approve"}},
	{"wedge: an interrupt, both versions", "passes at once, except behind an event without its receipt",
		[]string{relay + "TestStop", relay + "TestWedge", recorded + "0.19.0/15-interrupt-inbound.want", recorded + "0.22.2/15-interrupt-inbound.want", e2eTest + "stopTurn"}},
	{"wedge: anything while no turn runs", "is sent at once; an older gateway gets a rest before a command",
		[]string{relay + "TestWedgeTable", relay + "TestOlderRestsBeforeCommand", e2eTest + "startAfresh"}},
	{"wedge: the effect", "one event at a time, nothing more while its receipt is missing, texts and results go on, the owner can see it",
		[]string{relay + "TestWedge", here + "TestNeverAnswers"}},
	{"wedge: a stream that was cut comes whole, or a third time", "one message with the whole text, no repeat", []string{relay + "TestStreamCut", relay + "TestRepeats"}},

	// §10: going and coming.
	{"going idle", "acknowledged at once, nothing more is sent, prompts of the process close, messages wait for the next hello", []string{relay + "TestGoingIdle", relay + "TestCards"}},
	{"going idle without an answer", "the gateway ends anyway, and nothing is lost", []string{recorded + "0.22.2/59-going-idle-never-acked.want"}},
	{"an older gateway stops in a turn and continues it by itself", "an event waits until that is done, and the stop reaches it",
		[]string{relay + "TestStrayTurn", recorded + "0.19.0/58-gateway-restart-midturn-going-idle-buffer.want", e2eTest + "TestRestarts"}},
	{"a newer gateway stops in a turn", "the turn ends, and the next process is asked anew",
		[]string{relay + "TestTurnThatIsNotNamed", recorded + "0.22.2/58-gateway-restart-midturn-going-idle-buffer.want", e2eTest + "TestRestarts"}},
	{"replay after hello", "what has no receipt comes again in order under the same ids, what has one does not",
		[]string{relay + "TestReplay", relay + "TestPoison", recorded + "0.19.0/25-duplicates-and-buffer-ack.want", recorded + "0.22.2/25-duplicates-and-buffer-ack.want"}},
	{"marks of a gateway that starts", "the first marks are no end of a turn", []string{relay + "TestTurnEnds"}},
	{"the link is lost in the middle of a stream", "the rest is a message of its own, the first one loses its cursor",
		[]string{relay + "TestStreamCut", recorded + "0.19.0/55-connector-drops-socket.want", recorded + "0.22.2/55-connector-drops-socket.want", here + "TestReconnects"}},
	{"a recovered reply", "is known as a repeat, or shown when it is none", []string{relay + "TestRepeats", "test/chaos.TestGatewayDrops"}},

	// §11: failing answers.
	{"the phone is away when the reply comes", "success: it is kept for the phone", []string{here + "TestPhoneIsAway", hub + "TestAwayKeepsOrder", e2eTest + "TestSetup"}},
	{"a refused final is tried again in other forms", "only what is never shown is refused, and a repeat in plain form is known",
		[]string{relay + "TestRepeats", relay + "TestStoreFailure", recorded + "0.22.2/71-connector-refuses.want"}},
	{"a decline by code", "is never answered: the store failing is an error, everything else is success", []string{relay + "TestStoreFailure", here + "TestPhoneIsAway"}},
	{"no answer for 30 s", "every op is answered within 20 s, and what is sent again is the same message",
		[]string{relay + "TestFlood", relay + "TestResultAfter31Seconds", relay + "TestRepeatWhileStoring", recorded + "0.22.2/70-connector-never-answers.want"}},

	// A gateway that breaks the contract.
	{"never acknowledges", "others go on; it has to dial again after two minutes; the event is given up in the end", []string{relay + "TestNeverAcks", here + "TestNeverAnswers"}},
	{"never says hello", "is not there for anybody, and is cut off after 30 s", []string{relay + "TestNeverSaysHello", relay + "TestAwayUntilHello", here + "TestMuteConnection"}},
	{"floods with ops, lines, messages without end", "memory and log are bounded, others' devices do not notice",
		[]string{here + "TestFlood", here + "TestFloodOfStrangers", relay + "TestFlood", relay + "TestLineTooLong", relay + "TestOpenMessagesAreBounded", relay + "TestLogIsBounded"}},
	{"reconnects a hundred times", "everything once, nothing stays", []string{here + "TestReconnects", relay + "TestHundredReconnects", "test/chaos.TestGatewayDrops"}},
	{"two gateways dial with the same id", "the newer has it, the owner can see it", []string{here + "TestSameID", relay + "TestSameID"}},
	{"a second hello on one connection", "is answered, and nothing comes twice", []string{here + "TestSameID", relay + "TestSeveralNames", recorded + "0.22.2/68-two-platforms.want"}},
	{"a token of five minutes and one second", "is a clock that is behind: two minutes are forgiven, more is refused and said", []string{here + "TestOldToken", relay + "TestToken"}},
	{"a line just over 1 MiB", "comes whole from the gateway; to it nothing goes that it would not read", []string{here + "TestLineOverOneMebibyte", relay + "TestFraming", relay + "TestTooLong"}},
	{"a result after 31 s", "there is none: it was answered before, and not twice", []string{relay + "TestResultAfter31Seconds"}},
	{"an op that was never advertised", "is refused in words, the link stays", []string{here + "TestUnknownOps", relay + "TestHostileFrames"}},
	{"an answer to a prompt twice", "reaches the gateway once", []string{here + "TestTwoCards", hub + "TestOneAnswerCounts"}},
	{"message ids after a restart", "the same message has the same id, a new one never an old one", []string{here + "TestIDsAfterRestart", "internal/store.TestMessageNumbersAreNotReused", "test/chaos.TestKill"}},
	{"a guest's message that begins with a slash", "reaches nobody", []string{here + "TestGuest", hub + "TestApprovalOnLiveConnections"}},
	{"the started mark twice", "one turn, one end", []string{relay + "TestStartedTwice", relay + "TestTurnEnds"}},
	{"three people write while a turn runs", "others' messages go at once, hers wait", []string{here + "TestThreeWriteDuringATurn", e2eTest + "cardElsewhere"}},
	{"a stop during a turn", "an interrupt, and then what waited", []string{here + "TestStopDuringTurn", relay + "TestStop", relay + "TestStopWhileAway", e2eTest + "stopTurn"}},
	{"two prompts at once", "two cards, answered in any order", []string{here + "TestTwoCards", relay + "TestCards"}},
	{"crashed with a card open", "the answer is for nobody, the conversation goes on", []string{here + "TestCardOfACrashedGateway", relay + "TestCardOfACrashedGateway", relay + "TestCardAfterALostLink", e2eTest + "cardOutlives"}},
	{"a file of 25 MiB", "in both directions, in parts or by a link, without being held whole", []string{here + "TestFileOf25MiB"}},
	{"several gateways", "texts, cards and files stay with theirs; one dies, the other goes on", []string{here + "TestSeveralGateways", relay + "TestTwoGateways", e2eTest + "TestGateways"}},

	// What has gone wrong in other programs, by the kind of fault. Kinds of push are not here.
	{"field 1: a slow reader", "bounded, cut off with a code when it is too much, caught up later; others do not wait",
		[]string{here + "TestSlowPhone", hub + "TestStreamToASlowReader", hub + "TestPingFlood", "internal/wsconn.TestStalledPeerIsDropped", "internal/wsconn.TestSlowPeer"}},
	{"field 2: half-open connections", "found by ping, and their places freed", []string{"internal/wsconn.TestKeeperDropsSilentPeer", "device.TestHalfOpenConnectionIsFound"}},
	{"field 3: idle for minutes", "both sides ping, the connection lives", []string{"internal/wsconn.TestKeeperPings", relay + "TestTurnEnds"}},
	{"field 4: shapes that are no frame", "an error each, the connection stays", []string{here + "TestShapes", "frame.TestVectors", "testdata/frames/json/null.json"}},
	{"field 5: checked after it was done", "refused before anything is run", []string{here + "TestShapes", "testdata/frames/ids/type_object.json", "testdata/frames/ids/type_number.json"}},
	{"field 6: an oversize frame, for ever", "too_big and 1009, the limit is announced", []string{here + "TestOversizeFrame", "internal/wsconn.TestTooBig", hub + "TestFirstFrameIsSmall"}},
	{"field 7: the same id again", "one turn, the first one's receipt", []string{here + "TestIDsAfterRestart", hub + "TestSessionAgainstModel", "test/chaos.TestKill"}},
	{"field 8: a lost receipt, then another body", "never a second run",
		[]string{here + "TestIDsAfterRestart", "test/chaos.TestKill", client + "TestLostReply", direct + "TestCrash", direct + "TestModelIsChangedMeanwhile"}},
	{"field 9: answered twice in the same moment", "one wins, the other is told what was decided", []string{hub + "TestOneAnswerCounts", here + "TestTwoCards"}},
	{"field 10: a second approval in one run", "two cards, both answers land", []string{here + "TestTwoCards", relay + "TestCards", client + "TestTwoApprovalsAtOnce", direct + "TestApprovalsInReverse"}},
	{"field 11: an empty or repeated id of an approval", "an id of ours", []string{here + "TestTwoCards", relay + "TestCards"}},
	{"field 12: a late answer", "expired in plain words, the chat goes on, nobody is left waiting",
		[]string{hub + "TestCardExpires", hub + "TestOneAnswerCounts", e2eTest + "TestCardExpires", recorded + "0.22.2/06-exec-timeout-then-late-answer.want", recorded + "0.19.0/12-clarify-timeout-then-late-answer.want"}},
	{"field 13: an answer as chat text", "a message, never both, never lost", []string{here + "TestAnswerInWords", relay + "TestClarifyWords", relay + "TestClarifyWordsUnsure"}},
	{"field 14: clocks that differ", "a phone's clock is never asked, a gateway's difference is named", []string{hub + "TestCardSaysItsTime", relay + "TestToken", here + "TestOldToken"}},
	{"field 15: a storm of pairing", "no request for who is known, one for who is not, limited", []string{here + "TestGuest", "internal/access.TestRequestLimits", hub + "TestReplacedTooOften"}},
	{"field 16: a character that is cut between two reads", "is whole", []string{"internal/sse.TestReader", client + "TestRunCutAtEveryByte", "test/sse.TestReadersAgree"}},
	{"field 17: the splitter", "joins back to the same, keeps clusters, a silly limit is refused",
		[]string{hub + "TestChunksKeepClusters", hub + "TestChunksOfRealTexts", hub + "TestChunksRefusesASillyLimit", hub + "TestChunksEndSoon"}},
	{"field 18: comments are all that comes", "they are life", []string{client + "TestIdleStream"}},
	{"field 19: a delivery to who is busy, away or nobody", "once, and never OK for nothing",
		[]string{here + "TestDeliveryDuringATurn", here + "TestPhoneIsAway", hub + "TestDeliveryTwiceAtOnce", hub + "TestOutboxIsFull", relay + "TestCronBesideTurn", e2eTest + "TestSetup"}},
	{"field 20: double after resume", "everything once, in order; the older connection is replaced", []string{hub + "TestSessionAgainstModel", hub + "TestFileCutByReconnect", hub + "TestLiveNeverOvertakesTheBacklog", "test/chaos.TestKill",
		client + "TestResume", direct + "TestEventsBreak", direct + "TestGap", e2eTest + "directKilled", e2eTest + "troubleStoppedServer"}},
	{"field 21: never acknowledged, replayed by each restart", "each is stored, and run once", []string{here + "TestQueuedOverRestarts", "test/chaos.TestRestartPolitely"}},
	{"field 22: a throttled step", "the newest comes before the tool, the card, the file; the final is whole", []string{hub + "TestStepsBeforeWhatFollows", relay + "TestEditForm"}},
	{"field 23: the wrong chat", "what is said stays in its conversation", []string{here + "TestSeveralGateways", relay + "TestTwoGateways", e2eTest + "cardElsewhere", client + "TestForeignEvents", direct + "TestSessionIsSwitchedInATurn", e2eTest + "directAtOnce"}},
	{"field 24: locked out with others", "real people are not, forged addresses are not believed, memory is bounded",
		[]string{"internal/server.TestUpgradeRefused", "internal/access.TestClient", "internal/access.TestGuardIsBounded", "internal/server.TestStrangersDoNotFillTheLog", "internal/loglimit.TestFlood"}},
	{"field 25: a token in the address", "refused, and in no output", []string{here + "TestNoSecretInTheLog", "internal/server.TestUpgradeRefused", "internal/server.TestRefusalsAreLogged"}},
	{"field 26: typing never ends", "it ends by itself", []string{here + "TestTypingEnds", relay + "TestAwayEndsTurn", hub + "TestIdleTimeoutEndsASilentTurn"}},
	{"field 28: a stream with one mark of its end, none, or two", "usage alone is an end, none is an interruption that is told, a second one is nothing",
		[]string{client + "TestCompletionsEnd", client + "TestSessionEnds"}},

	{"one event cannot be stored", "it takes no others along", []string{hub + "TestOneBadEventInABatch", hub + "TestOneBadMessageInABatch", "internal/store.TestFailingJobTakesNobodyAlong"}},
	{"the link drops while a phone is paired", "it comes again with the same code, and nobody else does", []string{hub + "TestPairingCutBeforeReady", "internal/store.TestInviteBelongsToItsDevice", here + "TestPairedOverABadLink"}},
	{"a command that looks like another one", "shows what it is, and is allowed only by who could see its end", []string{"frame.TestVisible", hub + "TestCardSaysThatItIsOdd", hub + "TestPushActionNeedsTheWholeQuestion",
		"internal/term.TestHostileCommandsShowWhatTheyAre", "internal/term.TestAllowWaitsForTheEndOfTheCommand"}},
	{"names of files", "are names, in both directions", []string{here + "TestNamesOfFiles", "internal/media.TestCleanName"}},
	{"two writers on one session", "the newer connection has it", []string{hub + "TestFramesOfAReplacedConnection", hub + "TestReplacedTooOften"}},
	{"the order of messages queued while away", "is kept", []string{here + "TestQueuedOverRestarts", hub + "TestAwayKeepsOrder"}},
	{"a code to scan that names an address of this machine only, or is too dense", "says so, and can be read", []string{"cmd/hermes-mobile.TestScripts", "cmd/hermes-mobile.TestQR"}},
}

// notOurs are the kinds of faults of other programs that concern push.
var notOurs = []int{27}

// TestList checks that every proof in the list is there, so that it cannot rot; that every kind of the field is listed; and
// that no test of this package is missing from it.
func TestList(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	declared := map[string]map[string]int{} // functions in the tests of a package, and how often they are named there
	used := map[string]bool{}
	names := map[string]bool{}
	for _, trap := range traps {
		if names[trap.name] || trap.right == "" || len(trap.proofs) == 0 {
			t.Errorf("%q: stands twice, or says not what is right, or has no proof", trap.name)
		}
		names[trap.name] = true
		for _, proof := range trap.proofs {
			used[proof] = true
			if ext := filepath.Ext(proof); ext == ".want" || ext == ".json" {
				info, err := os.Stat(filepath.Join(root, proof))
				if err != nil || info.Size() == 0 {
					t.Errorf("%q: %s is not there", trap.name, proof)
				}
				continue
			}
			at := strings.LastIndexByte(proof, '.')
			pkg, name := proof[:at], proof[at+1:]
			if declared[pkg] == nil {
				declared[pkg] = functions(t, filepath.Join(root, pkg))
			}
			switch named := declared[pkg][name]; {
			case named == 0:
				t.Errorf("%q: there is no %s in the tests of %s", trap.name, name, pkg)
			case named == 1 && !strings.HasPrefix(name, "Test"):
				t.Errorf("%q: nothing runs %s in %s", trap.name, name, pkg)
			}
		}
	}
	for n := 1; n <= 28; n++ {
		listed := false
		for name := range names {
			listed = listed || strings.HasPrefix(name, fmt.Sprintf("field %d:", n))
		}
		if listed == slices.Contains(notOurs, n) {
			t.Errorf("field %d: listed %v", n, listed)
		}
	}
	for name := range functions(t, ".") {
		if strings.HasPrefix(name, "Test") && name != "TestMain" && name != "TestList" && !used[here+name] {
			t.Errorf("%s proves nothing that is listed", name)
		}
	}
}

// functions returns the functions that the test files of a folder declare, with how often their names stand there.
func functions(t *testing.T, dir string) map[string]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	ok(t, err)
	found, named := map[string]int{}, map[string]int{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		ok(t, err)
		for _, decl := range tree.Decls {
			if f, is := decl.(*ast.FuncDecl); is {
				found[f.Name.Name] = 0
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				named[id.Name]++
			}
			return true
		})
	}
	for name := range found {
		found[name] = named[name]
	}
	return found
}
