import java.util.UUID
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import kotlin.math.min
import kotlin.math.pow
import kotlin.random.Random
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import okhttp3.WebSocket
import okhttp3.WebSocketListener
import org.json.JSONObject

data class Cursor(val epoch: String, val seq: Long)

/** The state that outlives the app: the token in the key store, the rest in a file or a database. */
interface Store {
    val deviceId: String
    val pairCode: String? // the first time only
    var token: String?
    var cursor: Cursor?
    val unsent: LinkedHashMap<String, String> // frames without an ack, by id
}

/** The user interface. The client calls it on its own thread. */
interface Ui {
    fun message(id: String, text: String, final: Boolean) // redraw the one with this id
    fun part(file: JSONObject) // join data by id until final, or fetch url
    fun card(card: JSONObject) // show it as protocol.md §7 says
    fun cardDone(id: String, option: String)
    fun typing(on: Boolean)
    fun status(text: String)
}

class Hermes(private val url: String, private val store: Store, private val ui: Ui) : WebSocketListener() {
    private val http = OkHttpClient.Builder().pingInterval(25, TimeUnit.SECONDS).build()
    private val timer = Executors.newSingleThreadScheduledExecutor()
    private val pieces = HashMap<String, Array<String>>() // chunks of long replies
    private var socket: WebSocket? = null
    private var attempt = 0
    private var epoch = ""
    private var approved = false

    @Synchronized fun connect() {
        socket = http.newWebSocket(Request.Builder().url(url).build(), this)
    }

    @Synchronized fun close() {
        timer.shutdownNow()
        socket?.close(1000, null)
        http.dispatcher.executorService.shutdown()
    }

    /** Stores the message first, then sends it, and again after the next ready until its ack. */
    @Synchronized fun send(text: String) = keep(JSONObject().put("t", "text").put("text", text))

    @Synchronized fun answer(card: String, option: String, words: String? = null) =
        keep(JSONObject().put("t", "prompt").put("prompt_id", card).put("option_id", option).putOpt("text", words))

    private fun keep(f: JSONObject) {
        val id = UUID.randomUUID().toString()
        store.unsent[id] = f.put("id", id).toString()
        socket?.takeIf { approved }?.send(f.toString())
    }

    @Synchronized override fun onOpen(webSocket: WebSocket, response: Response) {
        val hello = JSONObject().put("t", "hello").put("device", JSONObject().put("id", store.deviceId).put("platform", "android"))
        if (store.token != null) hello.put("token", store.token) else hello.put("pair", store.pairCode)
        store.cursor?.let { hello.put("resume", JSONObject().put("epoch", it.epoch).put("seq", it.seq)) }
        webSocket.send(hello.toString())
    }

    @Synchronized override fun onMessage(webSocket: WebSocket, text: String) {
        val f = JSONObject(text)
        val id = f.optString("id")
        when (f.optString("t")) {
            "ready" -> {
                attempt = 0
                epoch = f.getJSONObject("resume").getString("epoch")
                if (store.cursor?.epoch != epoch || f.getJSONObject("resume").getBoolean("lost")) store.cursor = null
                if (f.has("token")) store.token = f.getString("token")
                ui.status("online")
                if (f.optBoolean("approved")) resend(webSocket) else store.unsent.values.firstOrNull()?.let { webSocket.send(it) } // gets an approval code
            }
            "approved" -> resend(webSocket)
            "accepted" -> store.unsent.remove(id)
            "error" -> {
                ui.status(f.optString("message"))
                if (approved && f.optString("code") !in LATER) store.unsent.remove(f.optString("ref"))
            }
            "message" -> ui.message(id, whole(id, f), f.getBoolean("final"))
            "media" -> ui.part(f)
            "prompt" -> ui.card(f)
            "prompt_done" -> {
                store.unsent.values.removeIf { JSONObject(it).optString("prompt_id") == id } // it acknowledges the answer
                ui.cardDone(id, f.optString("option_id"))
            }
            "typing" -> ui.typing(!f.optBoolean("stop"))
        } // ignore every other type
        // Move the cursor after storing the frame. A piece does not move it, and a repeated card may come before missed frames.
        val seq = f.optLong("seq")
        if (f.optString("t") != "prompt" && f.optBoolean("final", true) && seq > (store.cursor?.seq ?: 0)) {
            store.cursor = Cursor(epoch, seq)
            webSocket.send("""{"t":"ack","seq":$seq}""")
        }
    }

    /** An edit holds the whole text so far; a long reply comes in chunks. */
    private fun whole(id: String, f: JSONObject): String {
        val chunk = f.optJSONObject("chunk")
        val total = chunk?.optInt("total") ?: 1
        if (f.optBoolean("edit") || total <= 1) return f.optString("text")
        val all = pieces.getOrPut(id) { Array(total) { "" } }
        all[chunk!!.getInt("index")] = f.getString("text")
        if (f.getBoolean("final")) pieces.remove(id)
        return all.joinToString("")
    }

    private fun resend(webSocket: WebSocket) {
        approved = true
        store.unsent.values.forEach { webSocket.send(it) }
    }

    override fun onClosing(webSocket: WebSocket, code: Int, reason: String) {
        webSocket.close(code, null)
        ended(code)
    }

    override fun onFailure(webSocket: WebSocket, t: Throwable, response: Response?) = ended(0)

    @Synchronized private fun ended(code: Int) {
        approved = false
        pieces.clear()
        ui.typing(false)
        if (code == 1008 || code == 4409) return ui.status(if (code == 1008) "no access" else "another connection of this device took over")
        val wait = Random.nextDouble() * min(30.0, 0.5 * 2.0.pow(attempt++))
        if (!timer.isShutdown) timer.schedule(::connect, (wait * 1000).toLong(), TimeUnit.MILLISECONDS)
    }

    private companion object { val LATER = setOf("internal", "rate_limited") }
}
