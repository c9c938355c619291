import { render } from 'preact'
import './style/base.css'
import './style/chat.css'
import './style/message.css'
import './style/attached.css'
import './style/panel.css'
import './style/agent.css'
import { begin } from './talk/here'
import { App } from './view/app'
import { applyTheme } from './view/theme'
import { work } from './worker/register'

applyTheme()
void begin()
render(<App />, document.getElementById('app')!)
work()
