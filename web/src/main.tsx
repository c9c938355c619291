import { render } from 'preact'
import './style/base.css'
import './style/chat.css'
import './style/message.css'
import './style/attached.css'
import './style/panel.css'
import './style/agent.css'
import { start } from './conversation/currentClient'
import { App } from './view/app'
import { applyTheme } from './view/theme'
import { registerWorker } from './worker/register'

applyTheme()
void start()
render(<App />, document.getElementById('app')!)
registerWorker()
