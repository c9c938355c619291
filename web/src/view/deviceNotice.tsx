import type { DeviceItem } from '../talk/item'
import { newsOf } from '../talk/news'
import type { Talk } from '../talk/talk'
import { t } from '../words/words'
import { time } from './clock'
import { ask } from './dialog'
import { Icon } from './icon'

/** Newcomer tells of another device of the person, and shuts it out where the person does not know it. */
export function Newcomer({ talk, item }: { talk: Talk; item: DeviceItem }) {
  const { device, revocable, revoked } = item
  const name = device.name || device.id
  const revoke = () =>
    ask({
      title: t('revokeDevice'), text: t('revokeDeviceSure', { name }), label: t('revokeDevice'), danger: true, back: `[data-device-news="${CSS.escape(item.id)}"]`,
      run: async () => {
        await talk.revoke(device.id)
        return true
      },
    })
  return (
    <section class={`question newcomer ${revoked ? 'over' : ''}`} aria-label={t('deviceNews')} data-device-news={item.id} tabindex={-1}>
      <header><Icon name="shield" /><b>{t('deviceNews')}</b><time dateTime={new Date(item.at).toISOString()}>{time(item.at)}</time></header>
      <p class="asked"><bdi>{newsOf(item)}</bdi></p>
      <p class="quiet"><code dir="ltr">{device.id}</code>{device.platform && <> · <bdi>{device.platform}</bdi></>}</p>
      {revoked ? (
        <p class="outcome" role="status">{t('deviceRevoked')}</p>
      ) : revocable ? (
        <div class="options"><button type="button" class="danger" aria-label={t('revokeDeviceWho', { name })} onClick={revoke}>{t('revokeDevice')}</button></div>
      ) : (
        <p class="outcome">{t('ownerRevokes')}</p>
      )}
    </section>
  )
}
