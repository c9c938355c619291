import java.util.concurrent.CountDownLatch
import org.json.JSONObject

/** Requests a card, denies it, and prints the events, for the tests. */
fun main() {
    val store = object : Store {
        override val deviceId = "kotlin-1"
        override val pairCode: String? = null
        override var token: String? = System.getenv("HERMES_TOKEN")
        override var cursor: Cursor? = null
        override val unsent = LinkedHashMap<String, String>()
    }
    val done = CountDownLatch(1)
    lateinit var hermes: Hermes
    val ui = object : Ui {
        override fun message(id: String, text: String, final: Boolean) {
            if (!final) return
            println(text)
            if (text.startsWith("approval: ")) hermes.send("/demo long 9000") else done.countDown()
        }
        override fun part(file: JSONObject) = Unit
        override fun card(card: JSONObject) = hermes.answer(card.getString("id"), "deny")
        override fun cardDone(id: String, option: String) = println("done: $option")
        override fun typing(on: Boolean) = Unit
        override fun status(text: String) = Unit
    }
    hermes = Hermes(System.getenv("HERMES_URL"), store, ui)
    hermes.send("/demo approval")
    hermes.connect()
    done.await()
    hermes.close()
    check(store.unsent.isEmpty() && store.cursor != null)
}
